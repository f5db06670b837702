"""Telling what a turn does while it runs: the model's text on standard output, the rest beside it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from everfold.agent.results import TurnResult
from everfold.audit.requests import failure_of
from everfold.cli.advising import advice_for
from everfold.cli.describe import message_lines, plural
from everfold.cli.talk.host import note, write
from everfold.llm.chunks import Chunk, TextDelta
from everfold.routes.failures import UNKNOWN_MODEL
from everfold.session.derive import message_of
from everfold.session.events import Recorded

_WIDTH = 200
_CLOSING = ("step/end", "turn/end")


@dataclass(slots=True)
class Teller:
    """A watcher that prints.

    Attributes:
        stop: is called when nobody reads the output any more.
        is_quiet: whether nothing but notes is printed.
        failed: what printing raised.
    """

    stop: Callable[[], object]
    is_quiet: bool = False
    failed: OSError | None = None
    _is_amid_line: bool = field(default=False)
    _failed_attempt: list[str] = field(default_factory=list)

    def on_chunk(self, turn: int, step: int, chunk: Chunk) -> None:  # noqa: ARG002  # the contract gives them
        """Print a piece of text as it arrives."""
        if isinstance(chunk, TextDelta) and not self.is_quiet:
            self._print(chunk.text)

    def on_events(self, events: Sequence[Recorded]) -> None:
        """Say what was stored, where a person wants to know."""
        for event in events:
            if event.type in ("assistant/message", "assistant/attempt"):
                self.end_line()
            self._tell(event)

    def _tell(self, event: Recorded) -> None:
        """Say what an event is about; a failed attempt only if something is done about it."""
        if event.type not in _CLOSING:
            for line in self._failed_attempt:
                note(line)
        self._failed_attempt = []
        lines = list(told(event))
        if event.type == "assistant/attempt":
            self._failed_attempt = lines
        else:
            for line in lines:
                note(line)

    def end_line(self) -> None:
        """Go to a new line, unless one has just begun."""
        if self._is_amid_line:
            self._print("\n")

    def raise_failure(self) -> None:
        """Raise what printing raised, if it did."""
        if self.failed is not None:
            raise self.failed

    def _print(self, text: str) -> None:
        if self.failed is not None or not text:
            return
        try:
            write(text)
        except OSError as error:
            self.failed = error
            self.stop()
        self._is_amid_line = not text.endswith("\n")


def told(event: Recorded) -> Iterator[str]:
    """Yield what people are told of an event; most say nothing."""
    tell = _TELLERS.get(event.type)
    if tell is not None:
        yield from tell(event)


def _attempt(event: Recorded) -> Iterator[str]:
    failure = failure_of(event) or {}
    if failure.get("code") != "CANCELLED":
        yield f"no answer: {failure.get('code', 'unknown')}: {failure.get('message', '')}"


def _retry(event: Recorded) -> Iterator[str]:
    data = event.data
    seconds = data.get("delayMs", 0) / 1000
    yield f"asking again in {seconds:.1f} s, {data.get('retry')} of {data.get('maxRetries')}"


def _summary_retry(event: Recorded) -> Iterator[str]:
    failure = event.data.get("failure", {})
    yield f"no summary yet: {failure.get('code', 'unknown')}: {failure.get('message', '')}"
    yield from _retry(event)


def _omission(event: Recorded) -> Iterator[str]:
    count = sum(len(target["imageIndexes"]) for target in event.data["targets"])
    which = "image is" if count == 1 else "images are"
    yield (
        f"{count} {which} omitted from now on (seq {event.seq}); "
        f"`everfold images {event.originator_id}` lists them"
    )


def _summary(event: Recorded) -> Iterator[str]:
    yield f"{plural(len(event.data['shadowedSeqs']), 'older message')} replaced by a summary"


def _prune(event: Recorded) -> Iterator[str]:
    yield f"a long tool result was shortened (seq {event.data['shadowedRange']['start']})"


def _compacted(event: Recorded) -> Iterator[str]:
    if "error" in event.data:
        yield f"no summary was made: {event.data['error']}"


def _call(event: Recorded) -> Iterator[str]:
    yield f"calls {event.data['name']}: {event.data['arguments']}"[:_WIDTH]


def _result(event: Recorded) -> Iterator[str]:
    lines = list(message_lines(message_of(event)))
    yield " ".join(line.strip() for line in lines)[:_WIDTH]


def _repaired(event: Recorded) -> Iterator[str]:
    for reason in sorted({str(place["reason"]) for place in event.data["places"]}):
        is_text = "surrogate" in reason
        said = "text that is not valid Unicode was repaired" if is_text else f"repaired: {reason}"
        yield said[:_WIDTH]


_TELLERS: dict[str, Callable[[Recorded], Iterator[str]]] = {
    "assistant/attempt": _attempt,
    "llm/retry": _retry,
    "image/offload": _omission,
    "compaction/retry": _summary_retry,
    "compaction/summary": _summary,
    "compaction/prune": _prune,
    "compaction/end": _compacted,
    "tool/call": _call,
    "tool/result": _result,
    "content/repaired": _repaired,
}


def failure_text(result: TurnResult) -> str:
    """Return what people are told of a turn that did not end by itself."""
    if result.failure is None:
        return f"the turn ended: {result.kind}"
    said, advice = f"{result.failure.code}: {result.failure.message}", advice_of(result)
    return said if advice is None else f"{said}; {advice}"


def advice_of(result: TurnResult) -> str | None:
    """Return what people can do about a failed turn, None where there is nothing to say."""
    if result.failure is None:
        return None
    if result.failure.message.endswith(UNKNOWN_MODEL):
        return "--model and --route choose others"
    return advice_for(str(result.failure.code), result.session_id) or result.advice
