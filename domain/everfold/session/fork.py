"""Where a session may be forked, and what the child starts with (group K)."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from everfold.session.composition import Composition
from everfold.session.deciding import DecisionMeans
from everfold.session.errors import (
    BoundaryError,
    OpenTurnError,
    ProjectionMissingError,
    UnknownEventError,
)
from everfold.session.events import EventLike, Recorded, state_bytes, topic_of, topics_of, type_of
from everfold.session.frozen import Json
from everfold.session.ids import version_of
from everfold.session.lossless import natural
from everfold.session.session import created_event
from everfold.session.session_header import child_header
from everfold.session.state import END_SEED

TURN_TOPICS = topics_of("turn/start", "turn/end")
"""Topics of the events that bound turns."""

_ONE_BY_ONE = 8
"""So many ids are tried in turn before whole stretches are passed over."""


@dataclass(frozen=True, slots=True)
class ForkPlan:
    """What a fork stores: its header, the parent's rows up to a version, and a marker."""

    upto_version: int
    header: Recorded
    marker: Recorded


def check_boundary(boundary: object, last_seq: int) -> int:
    """Return the inclusive seq at which a fork cuts (R165, R166, R168).

    Args:
        boundary: a seq, or None for the whole log; -0 counts as 0.
        last_seq: the parent's last seq; -1 if it has no events.

    Raises:
        BoundaryError: not a whole number from 0 to the last seq.
    """
    if boundary is None:
        return last_seq
    seq = 0 if isinstance(boundary, float) and boundary == 0 else natural(boundary)
    if seq is None or seq > last_seq:
        raise BoundaryError(boundary, last_seq)
    return seq


def check_closed(session_id: str, boundary: int, last_turn_boundary: EventLike | None) -> None:
    """Refuse a prefix whose last turn boundary is a start (R169, R170).

    Raises:
        OpenTurnError: the prefix ends inside a turn.
    """
    if last_turn_boundary is not None and last_turn_boundary.type == "turn/start":
        raise OpenTurnError(session_id, boundary, last_turn_boundary.seq)


def check_readable(topics: Collection[str], composition: Composition) -> None:
    """Refuse a prefix that this composition could not fold (R175, V4).

    Args:
        topics: the distinct topics of the prefix's events.

    Raises:
        ProjectionMissingError: an event type has no interpreter.
        UnknownEventError: a required event type is unknown.
    """
    for topic in sorted(topics):
        type_ = type_of(topic)
        if type_ not in composition.vocabulary and not topic.endswith("?"):
            raise UnknownEventError(type_)
        if composition.needs_interpreter(type_) and type_ not in composition.definitions:
            raise ProjectionMissingError(type_)


def plan_fork(
    parent_header: Mapping[str, Json],
    parent_id: str,
    child_id: str,
    boundary: int,
    means: DecisionMeans,
) -> ForkPlan:
    """Return what the child of a checked cut starts with (R155, R171)."""
    now = means.clock()
    header = created_event(child_header(parent_header, parent_id, child_id, now), means)
    version = version_of(boundary)
    marker = Recorded(
        child_id,
        version + 1,
        topic_of(END_SEED),
        state_bytes(b'{"inherited":true}', event_id=means.new_id(), time_ms=now),
    )
    return ForkPlan(version, header, marker)


def free_id(is_taken: Callable[[str], bool], start: int = 1) -> str:
    """Return one of `session-1`, `session-2`, … that is not taken, from `start` on (R176).

    It is the first free one, or, beyond a run of taken ones, one that follows a taken one: among
    10,000 counted sessions some thirty ids are asked for, not all of them.
    """

    def is_free(number: int) -> bool:
        return not is_taken(f"session-{number}")

    for number in range(start, start + _ONE_BY_ONE):
        if is_free(number):
            return f"session-{number}"
    taken, step = start + _ONE_BY_ONE - 1, _ONE_BY_ONE
    while not is_free(taken + step):
        taken, step = taken + step, 2 * step
    free = bisect_left(range(taken, taken + step), True, key=is_free)
    return f"session-{taken + free}"
