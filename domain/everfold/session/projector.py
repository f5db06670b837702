"""The projector that the `eventsourcing` library's repository folds a session with."""

from collections.abc import Callable, Iterable

from everfold.session.composition import Composition
from everfold.session.deciding import DecisionMeans
from everfold.session.events import Recorded
from everfold.session.session import Session, header_of


def session_projector(
    composition: Composition, means: DecisionMeans
) -> Callable[[Session | None, Iterable[Recorded]], Session | None]:
    """Return a function that makes a session of its stored rows, or brings one up to date.

    It is given to `Application.repository.get(id, projector_func=…)`.
    """

    def project(session: Session | None, events: Iterable[Recorded]) -> Session | None:
        rows = iter(events)
        if session is None:
            created = next(rows, None)
            if created is None:
                return None
            session = Session(header_of(created), composition, means)
        session.catch_up(rows)
        return session

    return project
