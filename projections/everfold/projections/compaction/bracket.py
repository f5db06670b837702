"""The events around a compaction: a lock, and all that a finished one stores, in one batch (R279, R280, D10)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from everfold.llm.wellformed import well_formed
from everfold.projections.compaction import wishes
from everfold.projections.compaction.errors import (
    CompactionBusyError,
    CompactionChangedError,
    CompactionCommitError,
    CompactionError,
    CompactionPersistenceError,
)
from everfold.projections.compaction.job import CompactionWish, Job
from everfold.projections.compaction.retrying import SummaryRetry
from everfold.projections.compaction.wishes import Names
from everfold.session.access import Planner, SessionAccess
from everfold.session.deciding import AppendEvent
from everfold.session.errors import SessionError, StoreError
from everfold.session.events import EventLike, Recorded
from everfold.session.frozen import Json
from everfold.session.session import Session
from everfold.session.state import END_SEED

Asking = Callable[[Session, Names], AppendEvent]
"""Gives the wish to log the next summary request on a session as it is; asked again after a lost race."""

_MAX_REASON_LENGTH = 2000
"""Characters of a reason that are logged."""


def lock_of(session: Session) -> EventLike | None:
    """Return the start of the compaction that is under way, None if none is.

    A start is the lock; its end frees it, and so does a later end of the seed (R162, R280).
    """
    start = session.latest(wishes.START)
    freed = (session.latest(wishes.END), session.latest(END_SEED))
    if start is None or any(event is not None and event.seq > start.seq for event in freed):
        return None
    return start


def open_turn(session: Session) -> Json:
    """Return the number of the open turn, None outside of turns."""
    start = session.latest("turn/start")
    return start.data.get("turn") if start is not None and session.is_turn_open else None


def omissions_of(session: Session) -> int:
    """Return how many decisions about the content of messages a session holds."""
    return session.content_generation - session.replace_generation


@dataclass(frozen=True, slots=True)
class Bracket:
    """The lock that one compaction holds.

    Attributes:
        seq: its `compaction/start`.
        turn: the turn that was open then.
        omissions: how many projection events the session held then.
    """

    names: Names
    seq: int
    turn: Json
    omissions: int

    @classmethod
    def open(cls, access: SessionAccess, wish: CompactionWish, asking: Asking) -> "Bracket":
        """Take the lock, by a logged event, and log the first request beside it.

        Raises:
            CompactionBusyError: another compaction holds it.
            CompactionChangedError: the history changed before anything was done.
            CompactionSummaryError: there can be no request.
            CompactionPersistenceError: the store failed.
        """
        names: list[Names] = []

        def plan(session: Session) -> list[AppendEvent]:
            held = lock_of(session)
            if held is not None:
                raise CompactionBusyError(session.id, held.seq)
            names[:] = [Names(session.means.new_id(), wish.command_id)]
            return [wishes.start(names[0], open_turn(session)), asking(session, names[0])]

        start = _store(access, plan)[0]
        session = access.view()
        return cls(names[0], start.seq, start.data["turn"], omissions_of(session))

    def commit(
        self, access: SessionAccess, job: Job, content: Sequence[Json], facts: Mapping[str, Any]
    ) -> tuple[Recorded, ...]:
        """Store summary, replacement and end in one batch, if the history still stands.

        If turns began or ended meanwhile, no bracket may reach over their bounds: then this one
        ends as cancelled, and a whole new one stands beside it in the same batch.

        Raises:
            CompactionChangedError: the history changed, or the lock was freed.
            CompactionCommitError, CompactionPersistenceError: nothing was stored.
        """

        def plan(session: Session) -> list[AppendEvent]:
            self._check_held(session)
            job.check_stands(session)
            if open_turn(session) == self.turn and not self._saw_turns(session):
                return self._closing(session, 0, job, content, facts)
            names = replace(self.names, compaction_id=session.means.new_id())
            turn, seq = open_turn(session), session.next_seq + 1
            moved = replace(self, names=names, seq=seq, turn=turn)
            moved_end = wishes.end(self.names, self.turn, "cancelled: the turn ended meanwhile")
            batch = moved._closing(session, 2, job, content, facts)
            return [moved_end, wishes.start(names, turn), *batch]

        return tuple(_store(access, plan))

    def _saw_turns(self, session: Session) -> bool:
        bounds = (session.latest("turn/start"), session.latest("turn/end"))
        return any(event is not None and event.seq > self.seq for event in bounds)

    def _closing(
        self,
        session: Session,
        before: int,
        job: Job,
        content: Sequence[Json],
        facts: Mapping[str, Any],
    ) -> list[AppendEvent]:
        """Return summary, replacement and end; `before` events of the batch come first."""
        summary_seq = session.next_seq + before
        cited = [self.seq, summary_seq]
        message_id = session.means.new_id()
        return [
            wishes.summary(self.names, job.seqs, job.fixed_price, facts),
            wishes.checkpoint(self.names, message_id, content, job.seqs, cited),
            wishes.end(self.names, self.turn),
        ]

    def note_request(self, access: SessionAccess, asking: Asking) -> None:
        """Say in the log what the next summary request is made of.

        Raises:
            CompactionChangedError: the lock was freed, or the history changed.
            CompactionSummaryError: there can be no further request.
            CompactionCommitError, CompactionPersistenceError: it was not stored.
        """

        def plan(session: Session) -> list[AppendEvent]:
            self._check_held(session)
            return [asking(session, self.names)]

        _store(access, plan)

    def note_retry(self, access: SessionAccess, retry: SummaryRetry) -> None:
        """Say in the log that a summary request is to be sent again.

        Raises:
            CompactionChangedError: the lock was freed.
            CompactionPersistenceError: the store failed.
        """

        def plan(session: Session) -> list[AppendEvent]:
            self._check_held(session)
            return [wishes.retry(self.names, retry.fields())]

        _store(access, plan)

    def close(self, access: SessionAccess, error: BaseException) -> None:
        """Free the lock after a failure, with its reason; tell in the error if that is impossible.

        One end is attempted (R279). A lock that somebody else freed meanwhile is left alone.
        """

        def plan(session: Session) -> list[AppendEvent]:
            held = lock_of(session)
            is_ours = held is not None and held.seq == self.seq
            if isinstance(error, CompactionError):
                error.has_omitted = omissions_of(session) > self.omissions
            reason = _reason_of(error)
            return [wishes.end(self.names, self.turn, reason)] if is_ours else []

        try:
            access.view()
            access.append(plan)
        except SessionError as failure:
            error.add_note(
                f"the end of the compaction that began at seq {self.seq} was not stored either "
                f"({failure}); resuming the session frees it"
            )

    def _check_held(self, session: Session) -> None:
        held = lock_of(session)
        if held is None or held.seq != self.seq:
            raise CompactionChangedError(
                f"the compaction that began at seq {self.seq} was ended by another process; "
                "its summary is not used",
                seq=self.seq,
            )


def _reason_of(error: BaseException) -> str:
    """Return the text of an end event; the log must be able to hold it, whatever a provider said."""
    if not isinstance(error, Exception):
        return "cancelled"
    return well_formed(str(error) or type(error).__name__)[0][:_MAX_REASON_LENGTH]


def _store(access: SessionAccess, plan: Planner) -> Sequence[Recorded]:
    """Store what a plan decides.

    Raises:
        CompactionError: the plan refused, the session did, or the store failed (R288).
    """
    try:
        return access.append(plan)
    except CompactionError:
        raise
    except StoreError as error:
        raise CompactionPersistenceError(f"the compaction was not stored: {error}") from error
    except SessionError as error:
        raise CompactionCommitError(f"the session refused the compaction: {error}") from error
