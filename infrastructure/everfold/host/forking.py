"""Forks a session inside the database, and finds ids that are free."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from everfold.host.loading import Loader
from everfold.session.composition import Composition
from everfold.session.deciding import DecisionMeans
from everfold.session.errors import SessionExistsError
from everfold.session.events import CREATED_TOPIC
from everfold.session.fork import (
    TURN_TOPICS,
    check_boundary,
    check_closed,
    check_readable,
    free_id,
    plan_fork,
)
from everfold.session.ids import SessionId, seq_of, version_of
from everfold.session.ports import SessionStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Forker:
    """Forks the sessions of one store for one composition."""

    store: SessionStore
    composition: Composition
    means: DecisionMeans
    loader: Loader

    def fork(self, source_id: str, boundary: object, child: SessionId) -> None:
        """Copy a prefix of a session into a new one; no copied event passes through this process.

        Args:
            boundary: inclusive seq of the cut; the whole log if None (R165).

        Raises:
            SessionExistsError, SessionNotFoundError, BoundaryError, OpenTurnError,
            ProjectionMissingError, UnknownEventError: refused, in this order (R167, R175).
        """
        if self.store.version(child):
            raise SessionExistsError(child)
        header = self.loader.header(source_id)
        cut = check_boundary(boundary, seq_of(self.store.version(source_id)))
        self._check_prefix(source_id, cut)
        plan = plan_fork(header, source_id, child, cut, self.means)
        self.store.copy_stream(source_id, plan.upto_version, plan.header, (plan.marker,))

    def _check_prefix(self, source_id: str, cut: int) -> None:
        version = version_of(cut)
        topics = self.store.topics(source_id, upto=version) - {CREATED_TOPIC}
        if topics.intersection(TURN_TOPICS):
            last = self.store.last_of(source_id, TURN_TOPICS, upto=version)
            check_closed(source_id, cut, last)
        check_readable(topics, self.composition)


def with_free_id(store: SessionStore, make: Callable[[str], T]) -> T:
    """Make something under the first free `session-N` (R176); the next one if others were faster."""
    number = 1
    while True:
        free = free_id(lambda name: store.version(name) > 0, number)
        try:
            return make(free)
        except SessionExistsError as error:
            if error.session_id != free:
                raise
            number = int(free.removeprefix("session-")) + 1
