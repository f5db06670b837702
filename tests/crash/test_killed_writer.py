"""A writer is killed at random moments; `EVERFOLD_CRASHES` says how often on each database."""

import contextlib
import os
import random
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

from everfold.session.errors import ConflictError
from everfold.session.events import Recorded
from everfold.session.ports import SessionStore
from everfold.store.contract.rows import row, versions
from everfold.store.urls import open_store
from tests.processes import PATIENCE_S, Worker

CRASHES = int(os.environ.get("EVERFOLD_CRASHES", "12"))
STREAM = "killed"
LARGEST_BATCH = 20
LONGEST_LIFE_S = 0.25


def write_for_ever(url: str, seed: int, pipe: Connection) -> None:
    """Append batches until killed; report (batch, first version, size) of each acknowledged one."""
    choice = random.Random(seed)
    with open_store(url) as store:
        for number in range(1_000_000):
            size = choice.randint(1, LARGEST_BATCH)
            text = "x" * choice.randint(0, 3_000)
            first = append_batch(store, f"{seed}/{number}", size, text)
            pipe.send((f"{seed}/{number}", first, size))


def append_batch(store: SessionStore, name: str, size: int, text: str) -> int:
    """Append a batch after whatever is stored; a killed writer's last batch may still be landing."""
    while True:
        first = store.version(STREAM) + 1
        batch = [
            row(STREAM, first + index, text=f"{name} {index} {size} {text}")
            for index in range(size)
        ]
        try:
            store.append(batch)
        except ConflictError:
            continue
        return first


Report = tuple[str, int, int]
"""A batch's name, first version and size."""


def reports_until(worker: Worker[None], moment: float) -> Iterator[Report]:
    """Yield what the worker reports until the moment comes, then kill it and yield the rest."""
    while (left := moment - time.monotonic()) > 0:
        if worker.pipe.poll(left):
            yield received(worker)
    worker.process.kill()
    worker.process.join(PATIENCE_S)
    with contextlib.suppress(EOFError, OSError):
        while True:
            yield received(worker)


def received(worker: Worker[None]) -> Report:
    """Return the next report; a writer that stops before it is killed is a failure."""
    name, first, *size = worker.pipe.recv()
    assert size, f"the writer {name}: {first}"
    return name, first, size[0]


def batches_of(stored: list[Recorded]) -> list[Report]:
    """Return (batch, first version, size) of the stored batches; every one must be whole."""
    found: list[Report] = []
    position = 0
    while position < len(stored):
        name, _, size, *_ = stored[position].data["text"].split(" ")
        whole = stored[position : position + int(size)]
        labels = [tuple(event.data["text"].split(" ")[:3]) for event in whole]
        assert labels == [(name, str(index), size) for index in range(int(size))]
        found.append((name, stored[position].originator_version, int(size)))
        position += int(size)
    return found


def test_a_killed_writer_loses_nothing_acknowledged_and_leaves_no_part_of_a_batch(
    store_url: str,
) -> None:
    choice = random.Random(20_261_130)
    acknowledged: list[Report] = []
    # Nobody else has the database open: the next writer finds it as the killed one left it,
    # the first ones are killed while they make it.
    for seed in range(CRASHES):
        worker = Worker(write_for_ever, store_url, seed, reports=True)
        moment = time.monotonic() + choice.uniform(0, LONGEST_LIFE_S)
        acknowledged += reports_until(worker, moment)

    with open_store(store_url) as store:
        last = append_batch(store, "last", 3, "the next process continues")
        stored = list(store.read(STREAM))

    batches = batches_of(stored)
    assert versions(stored) == list(range(1, last + 3))
    assert set(acknowledged) <= set(batches)
    assert batches[-1] == ("last", last, 3)
    assert acknowledged, "no writer lived long enough to be acknowledged"
