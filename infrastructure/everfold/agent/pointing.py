"""Says which images of a session a failure is about, as its commands and functions name them: SEQ:INDEX."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from everfold.llm.failure import ImagePlace, LlmFailure
from everfold.session.session import Session

_MOST = 5
"""So many images are listed."""

_Named = tuple[int, int]


def pointed(failure: LlmFailure, session: Session) -> LlmFailure:
    """Return a failure whose message names its images in the session.

    If the provider did not say which one it refuses, those are named that came after the newest
    answer: it has taken the others before.
    """
    if failure.at_fault:
        named = _named(failure.at_fault, session)
        return _with(failure, "in this session: ", named)
    if failure.suspects:
        named = _named(failure.suspects, session)
        fresh = _after_answer(named, session)
        if fresh:
            return _with(failure, "which image is not said; new since the newest answer: ", fresh)
        return _with(failure, "which image is not said; the newest: ", named[-1:])
    return failure


def _with(failure: LlmFailure, said: str, named: Sequence[_Named]) -> LlmFailure:
    if not named:
        return failure
    listed = ", ".join(f"{seq}:{index}" for seq, index in named[:_MOST])
    more = f" and {len(named) - _MOST} more" if len(named) > _MOST else ""
    return replace(failure, message=f"{failure.message}; {said}{listed}{more}")


def _named(places: Iterable[ImagePlace], session: Session) -> list[_Named]:
    """Return seq and index of images, in surface order; those of messages that are gone are left out."""
    wanted: dict[str, list[int]] = {}
    for place in places:
        wanted.setdefault(place.message_id, []).append(place.index)
    return [
        (seq, index)
        for seq, message in session.messages().items()
        for index in sorted(wanted.get(str(message.get("id")), ()))
    ]


def _after_answer(named: Sequence[_Named], session: Session) -> list[_Named]:
    fresh: set[int] = set()
    for seq in reversed(session.nodes):
        event = session.event(seq)
        if event is not None and event.type == "assistant/message":
            break
        fresh.add(seq)
    return [each for each in named if each[0] in fresh]
