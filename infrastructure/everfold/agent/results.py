"""What became of a turn, read back from the log."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from everfold.host.sessions import Sessions
from everfold.llm.chunks import Usage
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.stream import usage_from_json
from everfold.routes.failures import UNKNOWN_MODEL
from everfold.session.derive import message_of
from everfold.session.events import EventLike
from everfold.session.frozen import Json

_DECISIONS = "everfold.projections.image_offload.decisions"
_LIST, _OMIT = f"`{_DECISIONS}.occurrences`", f"`{_DECISIONS}.omit`"
_COMPACT = "`everfold.host.compacting.compact_now` replaces old messages by a summary"
_UNATTENDED = (
    "no plugin is mounted that could recover: `everfold.profiles.opening.open_profile` mounts those "
    "that omit images and summarise"
)
_ELSEWHERE = "`agent.use(model=…)` asks another model; base_url is a setting of the route"
_RECOVERABLE = (FailureCode.IMAGE_OFFLOAD_REQUIRED, FailureCode.CONTEXT_WINDOW_EXCEEDED)
_ADVICE = {
    FailureCode.AUTH: "check the key of this route",
    FailureCode.RATE_LIMIT: "wait, then say something to go on",
    FailureCode.CONTEXT_WINDOW_EXCEEDED: f"shorten the history: {_COMPACT}",
    FailureCode.IMAGE_OFFLOAD_REQUIRED: (
        f"no more images can be omitted automatically; {_LIST} lists them, {_OMIT} omits some"
    ),
    FailureCode.INVALID_REQUEST: (
        f"the provider refuses something in the history; {_LIST} lists the images, {_OMIT} omits "
        f"some, {_COMPACT}"
    ),
    FailureCode.UNSUPPORTED_CONTENT: (
        f"choose a route that takes this content, or omit it: {_LIST} lists the images, {_OMIT} "
        f"omits some of a user or a tool; {_COMPACT}, and `sessions.fork({{id!r}}, boundary=seq)` "
        "makes a copy from before it"
    ),
}


@dataclass(frozen=True, slots=True)
class TurnResult:
    """The outcome of a turn.

    Attributes:
        kind: `completed`, `max-tokens`, `aborted`, `error`, `interrupted`, `blocked`; `open`
            while the turn runs, `dropped` if the input never came into a turn.
        text: the text of the last answer, "" if there was none.
        failure: with `error`.
        usage: the sum over the turn's answers; None if no provider reported any.
        start_seq: of `turn/start`; -1 if there is no turn.
        end_seq: of `turn/end`; -1 while it is open.
        has_recovery: whether the agent has plugins that are asked about failures.
    """

    session_id: str
    turn: int
    kind: str
    text: str = ""
    failure: LlmFailure | None = None
    usage: Usage | None = None
    start_seq: int = -1
    end_seq: int = -1
    has_recovery: bool = True

    @property
    def is_completed(self) -> bool:
        """Whether the model came to an end by itself."""
        return self.kind == "completed"

    @property
    def advice(self) -> str | None:
        """What a program, or its user, can do about a failure; None where there is nothing to say."""
        if self.failure is None:
            return None
        wait_ms = self.failure.provider_retry_after_ms
        if self.failure.code == FailureCode.RATE_LIMIT and wait_ms is not None:
            return f"the provider asks to wait {_duration(wait_ms)}; then say something to go on"
        if not self.has_recovery and self.failure.code in _RECOVERABLE:
            return _UNATTENDED
        if self.failure.message.endswith(UNKNOWN_MODEL):
            return _ELSEWHERE
        advice = {str(code): text for code, text in _ADVICE.items()}.get(str(self.failure.code))
        return None if advice is None else advice.format(id=self.session_id)

    def raise_for_failure(self) -> "TurnResult":
        """Return this result, or raise its failure.

        Raises:
            LlmError: the turn ended with an error.
        """
        if self.failure is not None:
            raise LlmError(self.failure)
        return self


def read_turn(sessions: Sessions, session_id: str, start_seq: int) -> TurnResult:
    """Return the outcome of the turn that starts at a seq."""
    result = TurnResult(session_id, 0, "open", start_seq=start_seq)
    for event in sessions.log(session_id, first=start_seq):
        if event.type == "turn/start":
            if event.seq != start_seq:
                break
            result = replace(result, turn=event.data["turn"])
        elif event.type == "assistant/message":
            result = _answered(result, event)
        elif event.type == "turn/end":
            return _ended(result, event)
    return result


def find_turn(sessions: Sessions, session_id: str, message_id: str, first: int) -> TurnResult:
    """Return the outcome of the turn that a queued message came into.

    Args:
        first: a seq at or before the message's queueing.
    """
    start = _turn_of(sessions.log(session_id, first=first), message_id)
    if start is None:
        return TurnResult(session_id, 0, "dropped")
    return read_turn(sessions, session_id, start)


def _turn_of(events: Iterable[EventLike], message_id: str) -> int | None:
    start: int | None = None
    for event in events:
        if event.type == "turn/start":
            start = event.seq
        elif event.type == "user/message" and event.data["id"] == message_id:
            return start
    return None


def _answered(result: TurnResult, event: EventLike) -> TurnResult:
    content = (message_of(event) or {}).get("content", [])
    text = "".join(block["text"] for block in content if block.get("type") == "text")
    usage = usage_from_json(event.data.get("usage"))
    return replace(result, text=text, usage=_sum(result.usage, usage))


def _ended(result: TurnResult, event: EventLike) -> TurnResult:
    reason: Mapping[str, Json] = event.data["reason"]
    failure = LlmFailure.from_json(reason["error"]) if "error" in reason else None
    return replace(result, kind=reason["kind"], failure=failure, end_seq=event.seq)


def _sum(left: Usage | None, right: Usage | None) -> Usage | None:
    if left is None or right is None:
        return right if left is None else left
    one, other = left.to_json(), right.to_json()
    total = {name: one.get(name, 0) + other.get(name, 0) for name in one | other}
    return usage_from_json(total)


def _duration(milliseconds: int) -> str:
    """Return a time to wait in words, rounded up."""
    seconds = -(-milliseconds // 1000)
    return f"{seconds} seconds" if seconds < 120 else f"{-(-seconds // 60)} minutes"
