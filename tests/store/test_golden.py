"""Golden files: the bytes that this schema stored are read by every later version.

The files under `tests/golden/` are never written again; a new schema adds new ones beside them.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import orjson
import pytest

from everfold.session.doors import recorded_of
from everfold.session.errors import SessionExistsError
from everfold.session.events import (
    ABSENT,
    CREATED_TOPIC,
    Event,
    Origin,
    Recorded,
    placement_bytes,
    state_bytes,
    topic_of,
)
from everfold.session.frozen import Json
from everfold.session.ports import StoredSnapshot
from everfold.store.contract.rows import row
from everfold.store.urls import open_store
from tests.postgres import connect
from tests.raw import path_of, stored_rows

GOLDEN = Path(__file__).parent.parent / "golden"
ROWS: list[dict[str, Json]] = [
    json.loads(line) for line in (GOLDEN / "rows-1.jsonl").read_text().splitlines()
]
SHORT: list[dict[str, Json]] = [
    json.loads(line) for line in (GOLDEN / "rows-2.jsonl").read_text().splitlines()
]
"""Answers from after their streams were shortened; those of `ROWS` hold every record."""

STREAM = "golden-é"
KEY = "golden-key"
SNAPSHOT = StoredSnapshot(STREAM, 6, "golden-fold@1", b"golden \x00 state")

every_row = pytest.mark.parametrize("golden", ROWS, ids=lambda golden: golden["eventId"])


def recorded(golden: dict[str, Json]) -> Recorded:
    """Return the stored row of a line of the golden file."""
    return Recorded(golden["stream"], golden["version"], golden["topic"], golden["state"].encode())


@every_row
def test_a_golden_row_reads_as_the_record_it_was_made_of(golden: dict[str, Json]) -> None:
    event = recorded(golden)

    assert event.record() == golden["record"]
    assert event.event_id == golden["eventId"]
    assert event.envelope().get("actor") == golden.get("actor")
    assert event.envelope().get("correlationId") == golden.get("correlationId")


@every_row
def test_the_same_decision_is_stored_in_the_same_bytes_today(golden: dict[str, Json]) -> None:
    event = Event.of(golden["record"])
    origin = Origin(golden.get("actor"), golden.get("correlationId"))

    state = state_bytes(
        orjson.dumps(event.data),
        event_id=golden["eventId"],
        time_ms=event.time,
        placement=placement_bytes(event.type, event.surface_op, event.source_event_seqs),
        origin=origin.fragment(),
    )

    assert state == golden["state"].encode()


@pytest.mark.parametrize("golden", SHORT, ids=lambda golden: golden["eventId"])
def test_an_answer_is_stored_in_the_same_bytes_today_and_read_whole(
    golden: dict[str, Json],
) -> None:
    today = recorded_of(Event.of(golden["record"]), golden["stream"], golden["eventId"])

    assert today == recorded(golden)
    assert recorded(golden).record() == golden["record"]


@every_row
def test_the_same_type_has_the_same_topic_today(golden: dict[str, Json]) -> None:
    event = Event.of(golden["record"])

    topic = topic_of(event.type, ignorable=event.ignorable)

    assert topic == golden["topic"]
    assert (event.surface_op is ABSENT) == ("surfaceOp" not in golden["record"])


def test_the_first_golden_row_is_a_header() -> None:
    assert ROWS[0]["topic"] == CREATED_TOPIC


@pytest.fixture(params=["sqlite", "postgres"])
def golden_url(request: pytest.FixtureRequest) -> str:
    """The URL of a database that was filled from the golden dump of schema 1."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    load: Callable[[str], None] = {"sqlite": load_sqlite, "postgres": load_postgres}[request.param]
    load(url)
    return url


def load_sqlite(url: str) -> None:
    """Make the file of the golden dump."""
    with closing(sqlite3.connect(path_of(url))) as connection:
        connection.executescript((GOLDEN / "store-1.sqlite.sql").read_text())


def load_postgres(url: str) -> None:
    """Fill the schema from the golden dump."""
    with connect(url) as server:
        server.execute((GOLDEN / "store-1.postgres.sql").read_bytes())


def test_a_golden_database_opens_and_gives_the_golden_rows(golden_url: str) -> None:
    with open_store(golden_url) as store:
        assert list(store.read(STREAM)) == [recorded(golden) for golden in ROWS]
        assert [n.event for n in store.read_all()] == [recorded(golden) for golden in ROWS]


def test_a_golden_database_keeps_keys_snapshots_and_deletions(golden_url: str) -> None:
    with open_store(golden_url) as store:
        assert list(store.find_append(STREAM, KEY)) == [recorded(g) for g in ROWS[1:4]]
        assert store.load_snapshot(STREAM) == SNAPSHOT
        with pytest.raises(SessionExistsError, match="deleted"):
            store.append([row("golden-deleted", 1)])


def test_a_golden_database_goes_on(golden_url: str) -> None:
    before = stored_rows(golden_url)
    with open_store(golden_url) as store:
        event = row(STREAM, len(ROWS) + 1)

        (position,) = store.append([event])

        assert position > before[-1][0]
        assert list(store.read(STREAM, after=len(ROWS))) == [event]
    assert stored_rows(golden_url)[:-1] == before


def test_a_migration_that_was_released_is_never_edited() -> None:
    released = json.loads((GOLDEN / "migrations.json").read_text())
    folder = files("everfold.store.migrations")

    found = {
        f"{database}/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest()
        for database in ("sqlite", "postgres")
        for file in folder.joinpath(database).iterdir()
        if file.name.endswith(".sql")
    }

    assert found == released
