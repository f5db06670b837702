"""The standing checks: what holds at the end of every test of field reports.

S1 committed rows never change. S2 folding again, in another process, and on the other database gives
the same. S5 an omission of images loses no text. S7 a text-only message works afterwards; it is
appended to the copy on the other database, so that the rows under test stay as they are.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Protocol

import psycopg

from everfold.host.opening import open_sessions
from everfold.session.derive import message_of
from everfold.session.errors import SessionError
from everfold.session.events import Recorded
from everfold.session.frozen import Json
from everfold.session.ids import SessionId
from everfold.session.session import Session
from everfold.store.urls import open_store
from tests.domain.kit import text, view
from tests.host.kit import hello
from tests.postgres import connect
from tests.processes import Worker
from tests.raw import path_of

LONGEST = 2_500
LARGEST = 8_000_000
"""Sessions of more events or bytes are left to the property tests: four folds take minutes."""

Place = tuple[str, int]
"""Stream id and version."""

Folds = dict[str, Json]
"""What can be seen of each session, or the code and seq of its refusal."""


class Witness:
    """Remembers rows at first sight, and compares them at the end.

    Attributes:
        urls: the stores that are looked at.
        damaged: ids of the sessions that the test itself harms.
    """

    def __init__(self, urls: Iterable[str]) -> None:
        self.urls = list(urls)
        self.damaged: set[str] = set()
        self._seen: dict[tuple[str, Place], tuple[str, bytes]] = {}

    def note(self, _session: SessionId, events: Sequence[Recorded]) -> None:
        """Remember what a host says that it stored; an observer of the first store's host."""
        for event in events:
            place = (event.originator_id, event.originator_version)
            self._seen[self.urls[0], place] = (event.topic, event.state)

    def look(self) -> None:
        """Remember every row that is stored now; those seen before must be as they were."""
        for url in self.urls:
            rows = rows_of(url)
            self._compare(url, rows)
            self._seen.update({(url, place): row for place, row in rows.items()})

    def check_rows(self) -> None:
        """S1: refuse if a row that was seen is not what it was; deleted sessions are left out."""
        for url in self.urls:
            self._compare(url, rows_of(url))

    def _compare(self, url: str, rows: Mapping[Place, tuple[str, bytes]]) -> None:
        gone = self.damaged | deleted_in(url)
        for (seen_url, place), row in self._seen.items():
            if seen_url == url and place[0] not in gone:
                assert rows.get(place) == row, f"S1: the row {place} has changed"


def rows_of(url: str) -> dict[Place, tuple[str, bytes]]:
    """Return topic and state of every stored row, in the global order."""
    order = "rowid" if url.startswith("sqlite:") else "notification_id"
    found = fetched(
        url,
        "SELECT originator_id, originator_version, topic, state"
        f" FROM stored_events ORDER BY {order}",
    )
    return {(stream, version): (topic, bytes(state)) for stream, version, topic, state in found}


def deleted_in(url: str) -> set[str]:
    """Return the ids of deleted sessions."""
    return {row[0] for row in fetched(url, "SELECT originator_id FROM deleted_streams")}


def fetched(url: str, query: str) -> list[tuple[Json, ...]]:
    """Return the rows of a query on a store's database; none if the store was never made."""
    if url.startswith("sqlite:"):
        if not path_of(url).is_file():
            return []
        try:
            with closing(sqlite3.connect(path_of(url), timeout=30)) as connection:
                return connection.execute(query).fetchall()
        except sqlite3.DatabaseError:
            return []
    with connect(url) as server:
        try:
            return server.execute(query.encode()).fetchall()
        except psycopg.errors.UndefinedTable:
            return []


def runs_of(url: str) -> dict[str, list[Recorded]]:
    """Return the rows of each session that is not too large to be folded again and again."""
    runs: dict[str, list[Recorded]] = {}
    for (stream, version), (topic, state) in rows_of(url).items():
        runs.setdefault(stream, []).append(Recorded(stream, version, topic, state))
    return {
        stream: run
        for stream, run in runs.items()
        if len(run) <= LONGEST and sum(len(row.state) for row in run) <= LARGEST
    }


def folds(url: str, ids: Sequence[str]) -> Folds:
    """Fold sessions of a store in a host that has nothing in memory."""
    with open_sessions(url, create=False, read_only=True) as sessions:
        return {each: folded(sessions.load, each) for each in ids}


class Load(Protocol):
    """How a host loads a session."""

    def __call__(self, wanted_id: str, /) -> Session: ...


def folded(load: Load, session_id: str) -> Json:
    """Return what can be seen of a session, or why nothing can."""
    try:
        return view(load(session_id))
    except SessionError as error:
        return {"code": error.code, "seq": error.seq}


def check_folds(url: str, other_url: str, damaged: set[str]) -> None:
    """S2: refuse if two folds of the same rows differ; the other store gets a copy of the rows."""
    runs = runs_of(url)
    ids = list(runs)
    first = folds(url, ids)

    assert folds(url, ids) == first, "S2: a second fold differs"
    assert Worker(folds, url, ids).result() == first, "S2: the fold of another process differs"
    sound = [each for each in ids if each not in damaged]
    with open_store(other_url) as store:
        for each in sound:
            store.append(runs[each])
    there = folds(other_url, sound)
    assert there == {each: first[each] for each in sound}, "S2: the other database's fold differs"


def check_texts_and_next_message(url: str) -> None:
    """S5 and S7, for every session that can be folded: no text is lost, and a message can follow."""
    with open_sessions(url) as sessions:
        for summary in list(sessions.summaries()):
            try:
                session = sessions.load(summary.stream_id)
            except SessionError:
                continue
            check_texts(session, list(sessions.log(session.id)))
            sessions.append_batch(session.id, [hello("last", text("thanks"))])
            last = list(sessions.load(session.id).messages())[-1]
            assert last["content"] == [text("thanks")], "S7: the next message is not shown"


def check_texts(session: Session, log: Sequence[Recorded]) -> None:
    """S5: refuse if a message on the surface lacks a text of the event that it is made of."""
    for seq, shown in session.messages().items():
        stored = message_of(log[seq])
        assert stored is not None
        assert list(texts_in(shown["content"])) == list(texts_in(stored["content"])), (
            f"S5: message {seq} of {session.id!r} lost text"
        )


def texts_in(content: Json) -> Iterator[str]:
    """Yield the texts of blocks, those in tool results too."""
    for block in content:
        if isinstance(block, Mapping) and block.get("type") == "text":
            yield block["text"]
        elif isinstance(block, Mapping) and isinstance(block.get("content"), Sequence):
            yield from texts_in(block["content"])
