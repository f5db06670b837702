"""What sessions take: stored bytes per payload byte, and memory of a live idle session."""

import subprocess
import sys
import uuid
from pathlib import Path

import psycopg

from everfold.host.sessions import Sessions
from everfold.projections.catalog import detached_composition
from everfold.session.lossless import encode
from everfold.store.urls import open_store
from tests.bench.pairs import Row
from tests.bench.payloads import events

EVENTS = 20_000
IDLE_SESSIONS = 20


def fill(url: str) -> int:
    """Store sessions of 1,000 events of about 600 bytes; return the payload bytes."""
    payload = 0
    with open_store(url) as store:
        sessions = Sessions(store, detached_composition(), snapshot_every=0)
        for _ in range(EVENTS // 1000):
            name = sessions.create(str(uuid.uuid4())).id
            batch = events(1000)
            payload += sum(len(encode(event.data)[0]) for event in batch)
            sessions.append_batch(name, batch)
    return payload


def sqlite_row(path: Path) -> Row:
    """Measure the file after a checkpoint."""
    payload = fill(f"sqlite:///{path}")
    return _row("sqlite", path.stat().st_size, payload)


def postgres_row(url: str, schema: str) -> Row:
    """Measure the event table with its indexes."""
    payload = fill(url)
    with psycopg.connect(url.split("&schema=")[0].split("?schema=")[0]) as connection:
        found = connection.execute(
            "SELECT pg_total_relation_size(%s::regclass)", (f'"{schema}".stored_events',)
        ).fetchone()
    assert found is not None
    return _row("postgres", int(found[0]), payload)


def _row(database: str, stored: int, payload: int) -> Row:
    return Row(
        "stored bytes, indexes included, per payload byte",
        database,
        stored / EVENTS,
        payload / EVENTS,
        "bytes/event",
        stored / payload,
        "<= 1.6",
    )


def idle_row(path: Path) -> Row:
    """Measure what a process grows by for each session of 1,000 messages that it holds and has read."""
    url = f"sqlite:///{path}"
    with open_store(url) as store:
        sessions = Sessions(store, detached_composition(), snapshot_every=0)
        for number in range(IDLE_SESSIONS):
            name = sessions.create(f"idle-{number}").id
            sessions.append_batch(name, [event for event in events(1500) if event.options])
    output = subprocess.run(
        [sys.executable, "-m", "tests.bench.idle", url, str(IDLE_SESSIONS)],
        check=True,
        capture_output=True,
        text=True,
    )
    resident = float(output.stdout)
    return Row(
        "resident bytes of a live idle session of 1,000 messages: to 2 MB",
        "sqlite",
        resident / 1e6,
        2.0,
        "MB",
        resident / 2e6,
        "<= 1.0",
    )
