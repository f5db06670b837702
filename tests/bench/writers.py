"""Eight writer processes on PostgreSQL, one session each: everfold against the library's recorder."""

import multiprocessing
import statistics
import time
import uuid
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from urllib.parse import parse_qsl, urlsplit

from eventsourcing.persistence import InfrastructureFactory, StoredEvent
from eventsourcing.utils import Environment

from everfold.host.sessions import Sessions
from everfold.projections.catalog import detached_composition
from everfold.store.urls import open_store
from tests.bench.pairs import Row
from tests.bench.payloads import events

WRITERS = 8
Writer = Callable[[str, int, Barrier], None]


def write_ours(url: str, commits: int, start: Barrier) -> None:
    """Append one event a commit to a session of its own."""
    with open_store(url) as store:
        sessions = Sessions(store, detached_composition())
        name = sessions.create(f"session-{uuid.uuid4().hex}").id
        batches = [events(1, number) for number in range(commits)]
        start.wait()
        for batch in batches:
            sessions.append_batch(name, batch)
        start.wait()


def write_stock(url: str, commits: int, start: Barrier) -> None:
    """Insert one event a commit through the library's own PostgreSQL recorder."""
    factory = InfrastructureFactory.construct(Environment("stock", stock_environment(url)))
    recorder = factory.application_recorder()
    stream = uuid.uuid4()
    states = [str(batch[0].data).encode() for batch in (events(1, n) for n in range(commits))]
    start.wait()
    for number, state in enumerate(states, start=1):
        recorder.insert_events([StoredEvent(stream, number, "tool/call", state)])
    start.wait()
    factory.close()


def stock_environment(url: str) -> dict[str, str]:
    """Return the library's settings for a store URL."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    return {
        "PERSISTENCE_MODULE": "eventsourcing.postgres",
        "POSTGRES_DBNAME": parts.path.lstrip("/"),
        "POSTGRES_HOST": query.get("host", parts.hostname or "localhost"),
        "POSTGRES_PORT": query.get("port", str(parts.port or 5432)),
        "POSTGRES_USER": parts.username or "postgres",
        "POSTGRES_PASSWORD": parts.password or "",
        "POSTGRES_SCHEMA": query["schema"],
        "POSTGRES_POOL_SIZE": "1",
        "CREATE_TABLE": "n",
    }


def create_stock_tables(url: str) -> None:
    """Make the library's own table."""
    environment = Environment("stock", {**stock_environment(url), "CREATE_TABLE": "y"})
    factory = InfrastructureFactory.construct(environment)
    factory.application_recorder()
    factory.close()


def throughput(writer: Writer, url: str, commits: int) -> float:
    """Return commits per second of all writers together."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(WRITERS + 1)
    processes = [context.Process(target=writer, args=(url, commits, start)) for _ in range(WRITERS)]
    for process in processes:
        process.start()
    start.wait()
    began = time.perf_counter()
    start.wait()
    took = time.perf_counter() - began
    for process in processes:
        process.join()
    return WRITERS * commits / took


def writers_row(url: str, *, rounds: int, commits: int) -> Row:
    """Measure both in turn."""
    create_stock_tables(url)
    pairs = [
        (throughput(write_ours, url, commits), throughput(write_stock, url, commits))
        for _ in range(rounds)
    ]
    return Row(
        f"{WRITERS} writers, {WRITERS} sessions: to the library's recorder",
        "postgres",
        statistics.median(mine for mine, _ in pairs),
        statistics.median(other for _, other in pairs),
        "commits/s",
        statistics.median(mine / other for mine, other in pairs),
        ">= 2.5",
    )
