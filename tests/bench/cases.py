"""The lines of the table, for one database each."""

import uuid
from collections.abc import Iterator

from everfold.host.sessions import Sessions
from everfold.projections.catalog import detached_composition
from everfold.session.deciding import AppendEvent
from everfold.session.events import Recorded
from everfold.session.ports import SessionStore
from everfold.session.session import Session
from tests.bench.pairs import Row, row
from tests.bench.payloads import events, user_message
from tests.bench.raw import Raw, Stored


class Bench:
    """One database, ours and the raw driver's table beside it."""

    def __init__(self, name: str, store: SessionStore, raw: Raw, *, rounds: int) -> None:
        self.name, self.store, self.raw, self.rounds = name, store, raw, rounds
        self.sessions = self.host()

    def host(self, *, snapshot_every: int = 0) -> Sessions:
        """Return a host with nothing in memory."""
        return Sessions(self.store, detached_composition(), snapshot_every=snapshot_every)

    def filled(self, count: int) -> str:
        """Return a new session of `count` events, stored in both tables."""
        name = f"session-{uuid.uuid4().hex}"
        self.sessions.create(name)
        for start in range(0, count, 1000):
            batch = events(min(1000, count - start), start)
            self.raw.insert([_stored(e) for e in self.sessions.append_batch(name, batch)])
        return name

    def rows(self) -> Iterator[Row]:
        """Measure and yield every line."""
        yield from (self.append(1, "<= 2.0"), self.append(10, "<= 2.0"), self.append(100, "<= 1.7"))
        for count in (10_000, 100_000):
            yield self.restore(count)
        yield self.restore_with_snapshot(100_000, tail=100)
        yield self.append_and_derive()
        yield self.fork(10_000)

    def append(self, size: int, limit: str) -> Row:
        """Append a batch through the session against raw INSERTs of the same rows.

        Batch and rows are made just before they are written, as by an agent: what lay in memory
        for a while takes both of them longer to read.
        """
        name = f"session-{uuid.uuid4().hex}"
        self.sessions.create(name)
        header = {"version": 3, "id": uuid.uuid4().hex, "createdAt": 0, "isSeeded": False}
        scratch = Session.create(header, self.sessions.composition, self.sessions.means)
        batch: list[AppendEvent] = []
        rows: list[Stored] = []

        def prepare() -> None:
            batch[:] = events(size, scratch.next_seq)
            rows[:] = [_stored(event) for event in scratch.append_batch(batch)]

        return row(
            f"append a batch of {size}",
            self.name,
            lambda: self.sessions.append_batch(name, batch),
            lambda: self.raw.insert(rows),
            rounds=self.rounds * 4,
            limit=limit,
            prepare=prepare,
        )

    def restore(self, count: int) -> Row:
        """Load a session cold against a raw SELECT of its rows."""
        name = self.filled(count)
        rounds = max(3, self.rounds // (1 if count <= 10_000 else 3))
        return row(
            f"restore {count} events, cold",
            self.name,
            lambda: self.host().load(name),
            lambda: self.raw.select(name),
            rounds=rounds,
            limit="<= 4.0",
        )

    def restore_with_snapshot(self, count: int, tail: int) -> Row:
        """Load a long session from a snapshot against a short one of the tail's length, both cold."""
        long, short = self.filled(count), self.filled(tail)
        self.sessions.snapshot(long)
        self.sessions.append_batch(long, events(tail, count))
        return row(
            f"restore {count} by snapshot and {tail} more, to {count} raw rows",
            self.name,
            lambda: self.host().load(long),
            lambda: (self.raw.select(long), self.raw.select(short)),
            rounds=self.rounds,
            limit="<= 1.0",
        )

    def append_and_derive(self) -> Row:
        """Append one message and derive the conversation, at 100,000 events against 1,000."""
        long, short = self.filled(100_000), self.filled(1_000)

        def once(name: str) -> None:
            self.sessions.append_batch(name, (user_message(1),))
            len(self.sessions.load(name).messages())

        return row(
            "append and derive at 100,000 events: to 1,000",
            self.name,
            lambda: once(long),
            lambda: once(short),
            rounds=self.rounds * 4,
            limit="<= 1.2",
        )

    def fork(self, count: int) -> Row:
        """Fork a session against a raw INSERT … SELECT."""
        name = self.filled(count)
        return row(
            f"fork {count} events",
            self.name,
            lambda: self._fork(name),
            lambda: self.raw.copy(name, f"session-{uuid.uuid4().hex}"),
            rounds=self.rounds,
            limit="<= 1.3",
        )

    def _fork(self, name: str) -> None:
        self.sessions.fork(name, child_id=f"session-{uuid.uuid4().hex}")


def _stored(event: Recorded) -> Stored:
    return event.originator_id, event.originator_version, event.topic, event.state
