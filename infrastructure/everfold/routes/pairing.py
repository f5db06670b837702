"""Tool calls and their answers, made valid for every provider when a request is built.

The log keeps what happened. On the wire each call has one answer directly after it; an answer
without a call becomes text where it stood, so nothing that was said is lost.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import orjson

from everfold.routes.limits import ToolIds
from everfold.routes.parts import AnswerPart, CallPart, Part, Role, TextPart, Turn
from everfold.routes.tool_ids import WireIds

UNANSWERED = (
    "No result was recorded for this call. It may or may not have run; check before repeating it."
)
NO_OUTPUT = "(no output)"
INVALID_ARGUMENTS = "invalid_json"
"""The key under which a provider gets arguments that are no JSON object."""


class Pairing:
    """Pairs calls and answers turn by turn; one exchange, from an assistant turn on, is held back.

    In what comes out every call is answered in the turn after it, under ids that `rule` allows.
    Answers may stand in user turns and are gathered from those up to the next assistant turn.
    """

    def __init__(self, rule: ToolIds) -> None:
        self._ids = WireIds(rule)
        self._assistant: Turn | None = None
        self._following: list[Turn] = []

    def add(self, turn: Turn) -> list[Turn]:
        """Take the next turn, with original ids; return the turns that are settled by it."""
        if turn.role != "assistant":
            self._following.append(turn)
            return []
        settled, _ = self._exchange()
        self._assistant, self._following = turn, []
        return settled

    def rest(self) -> list[Turn]:
        """Return the turns held back, as they are if nothing follows; `add` may go on after this."""
        turns, given = self._exchange()
        self._ids.take_back([call.id for call in self._calls()], given)
        return turns

    def _calls(self) -> list[CallPart]:
        parts = () if self._assistant is None else self._assistant.parts
        return [part for part in parts if isinstance(part, CallPart)]

    def _exchange(self) -> tuple[list[Turn], list[str]]:
        """Return the exchange held back, paired, and the ids that were given to its calls."""
        calls = self._calls()
        if self._assistant is not None and calls:
            given = [self._ids.give(call.id) for call in calls]
            return list(_exchange(self._assistant, calls, given, self._following)), given
        first = [] if self._assistant is None else [self._assistant]
        return [*first, *map(_without_strays, self._following)], []


def paired(turns: Iterable[Turn], rule: ToolIds) -> list[Turn]:
    """Return all turns of a conversation as `Pairing` gives them."""
    pairing = Pairing(rule)
    result = [settled for turn in turns for settled in pairing.add(turn)]
    return [*result, *pairing.rest()]


def with_calls_as_text(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Yield turns in which calls and their answers are text, for requests that declare no tools."""
    names: dict[str, str] = {}
    for turn in turns:
        if not any(isinstance(part, (CallPart, AnswerPart)) for part in turn.parts):
            yield turn
            continue
        parts: list[Part] = []
        for part in turn.parts:
            if isinstance(part, CallPart):
                names[part.id] = part.name
                parts.append(TextPart(f"[Called tool {part.name} with {part.arguments or '{}'}]"))
            elif isinstance(part, AnswerPart):
                failed = ", which failed" if part.is_error else ""
                parts.append(TextPart(f"[Result of tool {names[part.id]}{failed}:]"))
                parts.extend(part.parts)
            else:
                parts.append(part)
        role: Role = "user" if turn.role == "tool" else "assistant"
        yield replace(turn, role=role, parts=tuple(parts), replay_state=None)


def arguments_text(call: CallPart) -> str:
    """Return a call's arguments as JSON text of an object, as the model wrote them if they are one."""
    try:
        if isinstance(orjson.loads(call.arguments), dict):
            return call.arguments
    except orjson.JSONDecodeError:
        pass
    return orjson.dumps(arguments_of(call)).decode()


def arguments_of(call: CallPart) -> dict[str, Any]:
    """Return a call's arguments as the object that providers want; text that is none is kept in one."""
    if not call.arguments.strip():
        return {}
    try:
        value = orjson.loads(call.arguments)
    except orjson.JSONDecodeError:
        value = None
    return value if isinstance(value, dict) else {INVALID_ARGUMENTS: call.arguments}


def _exchange(
    assistant: Turn, calls: Sequence[CallPart], wire_ids: Sequence[str], following: Sequence[Turn]
) -> Iterator[Turn]:
    """Yield an assistant turn that calls, the turn that answers, and what else followed."""
    answers: list[AnswerPart | None] = [None] * len(calls)
    rest = [_taking(turn, calls, answers) for turn in following]
    renamed = iter(wire_ids)
    parts = tuple(
        replace(part, id=next(renamed)) if isinstance(part, CallPart) else part
        for part in assistant.parts
    )
    yield replace(assistant, parts=parts)
    yield Turn(
        "tool",
        tuple(
            AnswerPart(wire_id, (TextPart(UNANSWERED),), is_error=True)
            if answer is None
            else replace(answer, id=wire_id)
            for wire_id, answer in zip(wire_ids, answers, strict=True)
        ),
    )
    yield from (turn for turn in rest if turn.parts)


def _taking(turn: Turn, calls: Sequence[CallPart], answers: list[AnswerPart | None]) -> Turn:
    """Put the turn's answers beside their calls; return the turn without them, strays as text."""
    left: list[Part] = []
    for part in turn.parts:
        place = _open_call(part, calls, answers) if isinstance(part, AnswerPart) else None
        if place is None:
            left.append(part)
        elif isinstance(part, AnswerPart):
            answers[place] = part
    return _without_strays(_with_parts(turn, left))


def _open_call(
    answer: AnswerPart, calls: Sequence[CallPart], answers: Sequence[AnswerPart | None]
) -> int | None:
    """Return the first call with the answer's id that is not answered yet."""
    for place, call in enumerate(calls):
        if call.id == answer.id and answers[place] is None:
            return place
    return None


def _with_parts(turn: Turn, parts: Sequence[Part]) -> Turn:
    return turn if len(parts) == len(turn.parts) else replace(turn, parts=tuple(parts))


def _without_strays(turn: Turn) -> Turn:
    """Return a turn whose answers to no call are text."""
    if not any(isinstance(part, AnswerPart) for part in turn.parts):
        return turn
    parts: list[Part] = []
    for part in turn.parts:
        if isinstance(part, AnswerPart):
            said = f"[Result of tool call {part.id!r}, which this conversation does not hold:]"
            parts.extend((TextPart(said), *part.parts))
        else:
            parts.append(part)
    return replace(turn, parts=tuple(parts))
