"""What an interrupted log lacks to be whole: results of calls, the step's end, the turn's end (group X)."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from everfold.session.derive import message_of
from everfold.session.events import EventLike
from everfold.session.frozen import Json

NOT_STARTED = "The run was interrupted before this tool was started; it had no effect."
OUTCOME_UNKNOWN = (
    "The run was interrupted while this tool was running. Whether it took effect is unknown: "
    "check before calling it again."
)


@dataclass(slots=True)
class _Call:
    step: Json
    call_seq: int | None = None


@dataclass(slots=True)
class _Progress:
    """How far a log has come: the open turn and step, and the calls without a result."""

    is_turn_open: bool = False
    is_step_open: bool = False
    turn: Json = None
    step: Json = None
    pending: dict[str, _Call] = field(default_factory=dict)
    last_seq: int = -1
    time: int = 0

    def follow(self, event: EventLike) -> None:
        self.last_seq, self.time = event.seq, event.time
        follow = _FOLLOW.get(event.type)
        if follow is not None:
            follow(self, event)

    def start_turn(self, event: EventLike) -> None:
        self.turn, self.is_turn_open, self.is_step_open = _field(event, "turn"), True, False
        self.pending.clear()

    def end_turn(self, _event: EventLike) -> None:
        self.is_turn_open = self.is_step_open = False
        self.pending.clear()

    def start_step(self, event: EventLike) -> None:
        self.step, self.is_step_open = _field(event, "step"), True

    def end_step(self, _event: EventLike) -> None:
        self.is_step_open = False
        self.pending.clear()

    def advertise(self, event: EventLike) -> None:
        message = message_of(event) or {}
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool-call":
                call_id = block.get("id")
                # No result could name another one (R31).
                if isinstance(call_id, str) and call_id:
                    self._advertise(call_id, _field(event, "step"))

    def _advertise(self, call_id: str, step: Json) -> None:
        call = self.pending.setdefault(call_id, _Call(step))
        call.step, call.call_seq = step, None

    def start_call(self, event: EventLike) -> None:
        call = self.pending.get(str(_field(event, "callId")))
        if call is not None:
            call.call_seq = event.seq

    def settle(self, event: EventLike) -> None:
        source = (message_of(event) or {}).get("source")
        if isinstance(source, dict):
            self.pending.pop(str(source.get("callId")), None)


_FOLLOW = {
    "turn/start": _Progress.start_turn,
    "turn/end": _Progress.end_turn,
    "step/start": _Progress.start_step,
    "step/end": _Progress.end_step,
    "assistant/message": _Progress.advertise,
    "tool/call": _Progress.start_call,
    "tool/result": _Progress.settle,
}


def closers(events: Iterable[EventLike]) -> list[dict[str, Json]]:
    """Return the records that close an interrupted log, none if no turn is open (R322 to R331).

    They continue the log's seq and take its last time.

    Args:
        events: the log, or its part from the last `turn/start` on.
    """
    progress = _Progress()
    for event in events:
        progress.follow(event)
    if not progress.is_turn_open:
        return []
    return _number(progress, _bodies(progress))


def _field(event: EventLike, name: str) -> Json:
    return event.data.get(name) if isinstance(event.data, dict) else None


def _bodies(progress: _Progress) -> list[dict[str, Json]]:
    bodies = [
        _result(progress, call_id, call, progress.last_seq + 1 + offset)
        for offset, (call_id, call) in enumerate(progress.pending.items())
    ]
    if progress.is_step_open:
        step = {"turn": progress.turn, "step": progress.step}
        bodies.append({"type": "step/end", "data": step})
    end = {"turn": progress.turn, "reason": {"kind": "interrupted"}}
    bodies.append({"type": "turn/end", "data": end})
    return bodies


def _result(progress: _Progress, call_id: str, call: _Call, seq: int) -> dict[str, Json]:
    started = call.call_seq is not None
    block = {
        "type": "tool-result",
        "toolCallId": call_id,
        "content": [{"type": "text", "text": OUTCOME_UNKNOWN if started else NOT_STARTED}],
        "isError": True,
    }
    data = {
        "turn": progress.turn,
        "step": call.step,
        "message": {
            "id": f"interrupted-tool-result-{call_id}-{seq}",
            "role": "user",
            "source": {"kind": "tool", "callId": call_id},
            "content": [block],
        },
        "error": {
            "name": "ToolOutcomeUnknownError" if started else "ToolNotStartedError",
            "code": "TOOL_OUTCOME_UNKNOWN" if started else "TOOL_NOT_STARTED",
        },
    }
    body: dict[str, Json] = {"type": "tool/result", "data": data, "surfaceOp": "append"}
    if started:
        body["sourceEventSeqs"] = [call.call_seq]
    return body


def _number(progress: _Progress, bodies: list[dict[str, Json]]) -> list[dict[str, Json]]:
    return [
        {**body, "seq": progress.last_seq + 1 + offset, "time": progress.time}
        for offset, body in enumerate(bodies)
    ]
