"""Reports from the field, group G: what grows with the log, in memory and on disk.

What is counted is rows, bytes, and the peak of a process's memory, never seconds.
"""

import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from everfold.attachments.admission import Source, admit
from everfold.attachments.filesystem import FileAttachments
from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions
from everfold.session.deciding import AppendEvent
from everfold.session.events import Recorded
from everfold.session.ports import SessionStore
from everfold.store.urls import open_store
from tests.attachments.images import encoded, noise
from tests.cli.programs import ENTRY_POINT, environment
from tests.domain.kit import text
from tests.field_reports.kit import names, turn
from tests.field_reports.test_d import summary_of
from tests.field_reports.witness import Witness, rows_of
from tests.host.kit import hello
from tests.processes import Worker
from tests.store.test_field_g import stored_bytes

BIG = "x" * 200_000
BIG_EVENTS = 400
"""80 MB: the reported 600 MB would take minutes; the ceiling is as much lower."""
CEILING_MB = 100
EVERY = 40


@pytest.fixture
def big(store_url: str) -> str:
    """The URL of a store with a session of 80 MB; summaries keep 8 MB in sight, snapshots are stored."""
    with open_sessions(store_url, snapshot_every=EVERY) as sessions:
        sessions.create("s")
        for first in range(0, BIG_EVENTS, EVERY):
            for number in range(first, first + EVERY):
                sessions.append_batch("s", [hello(f"u-{number}", text(BIG))])
            if first + EVERY < BIG_EVENTS:
                nodes = list(sessions.load("s").nodes)
                sessions.append_batch("s", [summary_of(nodes, f"summary-{first}")])
    return store_url


LAUNCHER = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""A child's peak counts what its parent had when it was forked: a small parent has to start it."""


def peak_mb(*arguments: str) -> int:
    """Run the program and return the most memory that it had, in MB."""
    command = [sys.executable, "-S", "-c", LAUNCHER, *ENTRY_POINT, *arguments]
    done = subprocess.run(command, capture_output=True, env=environment(), check=True)
    status, peak = map(int, done.stdout.split())
    assert status == 0, done.stderr
    return peak // (1024 * 1024 if sys.platform == "darwin" else 1024)


def test_g5_no_command_needs_memory_for_the_whole_log(big: str, tmp_path: Path) -> None:
    commands: dict[str, tuple[str, ...]] = {
        "list": ("list",),
        "show": ("show", "s", "--last", "20"),
        "log": ("log", "s", "--last", "20"),
        "export": ("export", "s", "-o", str(tmp_path / "s.jsonl")),
        "fork": ("fork", "s"),
        "resume": ("resume", "s"),
    }

    peaks = {name: peak_mb(*arguments, "--store", big) for name, arguments in commands.items()}

    assert {name: peak for name, peak in peaks.items() if peak > CEILING_MB} == {}
    assert (tmp_path / "s.jsonl").stat().st_size > BIG_EVENTS * len(BIG)


def growth_by_reading(url: str, descending: bool) -> int:
    """Read a whole stream row by row; return by how many MB the process's peak memory grew."""
    with open_store(url) as store:
        store.version("s")
        before = own_peak_mb()
        count = sum(1 for _row in store.read("s", descending=descending))
        assert count > BIG_EVENTS
        return own_peak_mb() - before


def own_peak_mb() -> int:
    """Return the most memory that this process had, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // (1024 * 1024 if sys.platform == "darwin" else 1024)


def test_g5_a_stream_is_read_in_pages_of_few_large_rows(big: str) -> None:
    growth = {way: Worker(growth_by_reading, big, way).result() for way in (False, True)}

    assert {way: grown for way, grown in growth.items() if grown > 50} == {}


class CountingStore:
    """A store that counts the rows that are read through it."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store
        self.count = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.store, name)

    def read(self, stream_id: str, **window: object) -> Iterator[Recorded]:
        """Yield the rows of a stream, counted."""
        for row in self.store.read(stream_id, **window):  # type: ignore[arg-type]  # passed on as they are
            self.count += 1
            yield row


@pytest.mark.parametrize("length", [100, 20_000])
def test_g1_a_turn_reads_what_came_since_and_not_the_log(store_url: str, length: int) -> None:
    """Counted on two lengths: what an append reads does not depend on what was there before."""
    with open_sessions(store_url) as sessions:
        sessions.create("s")
        sessions.append_batch("s", [AppendEvent("todo/write", {"n": n}) for n in range(length)])
        counting = CountingStore(sessions.store)
        host = Sessions(cast("SessionStore", counting), sessions.composition)
        host.load("s")
        counting.count = 0

        for number in range(10):
            host.append_batch("s", turn(number))
            host.load("s").messages()

    assert counting.count <= 30


def test_g3_snapshots_and_header_do_not_triple_a_conversation(store_url: str) -> None:
    choice = random.Random(3)
    texts = [choice.randbytes(1_000).hex() for _ in range(500)]
    with open_sessions(store_url) as sessions:
        sessions.create("s")
        for number, words in enumerate(texts):
            start, question, _answer, end = turn(number, words)
            sessions.append_batch("s", [start, question, end])
        assert sessions.store.load_snapshot("s") is not None

    assert stored_bytes(store_url) <= 3 * sum(map(len, texts))


def test_g4_a_picture_of_four_sessions_and_three_forks_is_stored_once(
    sessions: Sessions, tmp_path: Path
) -> None:
    files = FileAttachments(tmp_path / "attachments")
    source = Source(encoded(noise(400, 420), "PNG"), "shot.png")
    for number in range(4):
        sessions.create(f"s-{number}")
        for _ in range(10):
            (ref,) = admit([source], files)
            image = {"type": "image", "attachment": dict(ref)}
            sessions.append_batch(f"s-{number}", [hello("u", image)])
    for number in range(3):
        sessions.fork(f"s-{number}", child_id=f"fork-{number}")

    sizes = files.sizes()

    assert sizes.stored_bytes == ref["bytes"] > 500_000
    assert sizes.logical_bytes == 40 * sizes.stored_bytes
    on_disk = sum(path.stat().st_size for path in files.root.rglob("*") if path.is_file())
    assert on_disk <= 1.5 * sizes.stored_bytes
    assert len(rows_of_all(sessions)) == 4 * 11 + 3 * 12


def rows_of_all(sessions: Sessions) -> list[int]:
    """Return the sizes of all stored rows; none of them holds a picture."""
    sizes = [len(n.event.state) for n in sessions.store.read_all()]
    assert max(sizes) < 1_000
    return sizes


def test_g6_a_second_compaction_writes_a_handful_of_rows(
    store_url: str, sessions: Sessions, witness: Witness
) -> None:
    """A tenth of the reported 20,000 events; what is written is counted, so length does not matter."""
    sessions.create("s")
    sessions.append_batch("s", [hello(f"u-{n}", text("once")) for n in range(2_000)])
    sessions.append_batch("s", [summary_of(range(1_500), "first")])
    before = rows_of(store_url)

    nodes = list(sessions.load("s").nodes)[:400]
    sessions.append_batch("s", [summary_of(nodes, "second")])

    after = rows_of(store_url)
    assert len(after) == len(before) + 1
    assert {place: after[place] for place in before} == before
    assert names(sessions, "s") == ["second", *(f"u-{n}" for n in range(1_899, 2_000))]
