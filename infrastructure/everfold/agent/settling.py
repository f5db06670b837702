"""What is stored of an answer: the message, what was mended in it, its calls, and the end of its step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from everfold.agent import wishes
from everfold.agent.attempt import Attempt
from everfold.agent.calling import Call, Outcome, not_run
from everfold.agent.log import OwnedTurn
from everfold.agent.loop import Loop
from everfold.agent.opening import open_step
from everfold.llm.assembly import Answer
from everfold.llm.route import LlmRequest
from everfold.llm.stream import Record
from everfold.session.deciding import AppendEvent
from everfold.session.events import Recorded
from everfold.session.frozen import Json
from everfold.session.session import Session


def attempt_wish(place: Mapping[str, int], records: Sequence[Record]) -> AppendEvent:
    """Return the wish to log an attempt that gave no message."""
    return AppendEvent("assistant/attempt", {**place, "stream": list(records)})


def result_wishes(place: Mapping[str, int], outcome: Outcome, message_id: str) -> list[AppendEvent]:
    """Return the events that answer a call."""
    options: dict[str, Json] = {"surfaceOp": "append"}
    if outcome.call.seq is not None:
        options["sourceEventSeqs"] = [outcome.call.seq]
    return [
        AppendEvent("tool/result", outcome.data(place, message_id), options),
        *wishes.repaired(place, message_id, outcome.repairs),
    ]


@dataclass(slots=True)
class Settlement:
    """The events that settle a step by an answer, whole or cut short.

    Attributes:
        aborted_by: who cancelled the turn, None if nobody did.
        next_step: the step that the last plan opens; None if it closes the turn, or calls tools.
    """

    loop: Loop
    owned: OwnedTurn
    step: int
    request: LlmRequest
    attempt: Attempt
    aborted_by: Mapping[str, Json] | None
    next_step: int | None = None
    answer: Answer = field(init=False)
    _message_id: str = field(init=False)

    def __post_init__(self) -> None:
        self.answer = self.attempt.answer()
        self._message_id = self.loop.log.new_id()

    @property
    def has_message(self) -> bool:
        """Whether anything was delivered that can be kept as a message."""
        return bool(self.answer.content)

    @property
    def reason(self) -> Mapping[str, Json]:
        """How the turn ends if nothing follows this answer."""
        if self.attempt.was_cancelled:
            return {"kind": "aborted", "reason": dict(self.aborted_by or {"kind": "user"})}
        return {"kind": "max-tokens"} if self._is_cut else {"kind": "completed"}

    @property
    def _is_cut(self) -> bool:
        finish = self.answer.finish
        return self.attempt.was_cut or (finish is not None and finish.kind == "max-tokens")

    @property
    def _calls_tools(self) -> bool:
        return bool(self.answer.tool_calls) and self.reason["kind"] == "completed"

    @property
    def _place(self) -> dict[str, int]:
        return {"turn": self.owned.turn, "step": self.step}

    def plan(self, session: Session, *, keeps_stream: bool) -> list[AppendEvent]:
        """Return the events; the step is closed with them unless tools are to be called.

        Args:
            keeps_stream: false for an answer that is too large for one event with its stream.
        """
        place = self._place
        batch = [
            wishes.assistant_message(place, self._message(), self._facts(keeps_stream)),
            *wishes.repaired(place, self._message_id, self.answer.repairs),
        ]
        if self._calls_tools:
            return batch + [wishes.tool_call(place, block) for block in self.answer.tool_calls]
        return [*batch, *self._refusals(), *self._ending(session)]

    def _message(self) -> dict[str, Json]:
        config = self.request.config
        source = {"kind": "model", "provider": config["provider"], "model": config["model"]}
        if self.answer.replay_state is not None and not self.attempt.is_interrupted:
            source["replayState"] = dict(self.answer.replay_state)
        content = list(self.answer.content)
        return {"id": self._message_id, "role": "assistant", "content": content, "source": source}

    def _facts(self, keeps_stream: bool) -> dict[str, Json]:
        facts: dict[str, Json] = {"stream": self.attempt.assembler.records if keeps_stream else []}
        if self.answer.usage is not None:
            facts["usage"] = self.answer.usage.to_json()
        if self.attempt.is_interrupted:
            facts["interrupted"] = True
        return facts

    def _refusals(self) -> list[AppendEvent]:
        """Return the answers to calls that nobody will run."""
        why = "the turn was cancelled" if self.attempt.was_cancelled else "the answer was cut off"
        return [
            wish
            for block in self.answer.tool_calls
            for wish in result_wishes(
                self._place, not_run(_call(block, None), why), self.loop.log.new_id()
            )
        ]

    def _ending(self, session: Session) -> list[AppendEvent]:
        turn = self.owned.turn
        end = wishes.step_end(turn, self.step)
        waits = self.loop.log.inbox.at(session).next_step
        is_free = self.step < self.loop.settings.limits.steps
        if waits and is_free and self.reason["kind"] == "completed":
            self.next_step = self.step + 1
            return [end, *open_step(self.loop, session, turn, self.next_step)]
        self.next_step = None
        return [end, wishes.turn_end(turn, self.reason)]

    def calls(self, events: Sequence[Recorded]) -> tuple[Call, ...]:
        """Return the calls that are to be run, with the seqs under which they were stored."""
        stored = [event.seq for event in events if event.type == "tool/call"]
        blocks = self.answer.tool_calls if stored else ()
        return tuple(_call(block, seq) for block, seq in zip(blocks, stored, strict=True))


def _call(block: Mapping[str, Json], seq: int | None) -> Call:
    return Call(block["id"], block["name"], block["arguments"], seq)
