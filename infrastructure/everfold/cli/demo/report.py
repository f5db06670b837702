"""What the demonstration prints: every request as the model saw it, and what happened to the session."""

import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from everfold.audit.auditing import AuditReport
from everfold.audit.walking import Step
from everfold.cli.demo.occurrences import Occurrence, occurrences
from everfold.cli.demo.place import Place
from everfold.cli.demo.story import Exchange, Fork, Story
from everfold.cli.describe import plural, size
from everfold.cli.visible import one_line
from everfold.session.frozen import Json

WIDTH = 80
MAX_NAMES = 6
_TIE = "\xa0"
"""A space at which no line is broken."""


class Heading(str):
    """A line above a part of the report."""

    __slots__ = ()


_Numbers = Mapping[tuple[int, int], int]
"""The number of an image by its place: event and index."""


def lines_of(story: Story, chosen: Place, image_count: int) -> Iterator[str]:
    """Yield the report, at most 80 columns wide but for paths and commands."""
    limit = size(story.budget.max_bytes)
    pictures = plural(image_count, "image")
    yield f"An agent looks at {pictures}; its route takes {limit} of them a request, in base64."
    yield f"Store: {chosen.database}, with {story.stored_images} image files beside it."
    yield ""
    yield Heading("WHAT THE MODEL SAW, request by request, rebuilt from the log")
    numbers = _numbers(story)
    seen = -1
    for exchange in story.exchanges:
        for line in _exchange_lines(story, exchange, numbers, seen):
            yield from _wrapped(line, 12)
        settled = exchange.request.settled_seq
        seen = exchange.request.seq if settled is None else settled
    yield ""
    yield Heading("WHAT HAPPENED TO THE SESSION")
    for line in _event_lines(story):
        yield from _wrapped(line, 10)
    yield ""
    yield from _verdict_lines(story)
    yield ""
    yield from _next_lines(story, chosen)


def _numbers(story: Story) -> _Numbers:
    """Number the images in the order in which they came to the model first."""
    numbers: dict[tuple[int, int], int] = {}
    for exchange in story.exchanges:
        for each in occurrences(exchange.request.messages()):
            numbers.setdefault((each.seq, each.index), len(numbers) + 1)
    return numbers


def _exchange_lines(
    story: Story, exchange: Exchange, numbers: _Numbers, seen: int
) -> Iterator[str]:
    request = exchange.request
    found = occurrences(request.messages())
    kept = [each for each in found if not each.is_omitted]
    omitted = [each for each in found if each.is_omitted]
    head = f"{request.number}. turn {request.turn}, seq {request.seq}: {_listed(kept, numbers)}"
    head += f" ({size(exchange.load)})" if kept else ""
    yield f"{head}, omitted {_numbered(omitted, numbers)}" if omitted else head
    for seq, message in request.messages():
        if seq > seen and message["role"] != "assistant":
            yield from _message_lines(seq, message, numbers, found)
    if exchange.answer is not None:
        yield f"   {'model':<8} {_text(exchange.answer)}"
    elif request.failure is not None:
        yield f"   {'REFUSED':<8} {request.failure.get('code')}: {request.failure.get('message')}"
        yield from _omission_lines(story, request.settled_seq, numbers, found)


def _listed(found: list[Occurrence], numbers: _Numbers) -> str:
    if not found:
        return "no image"
    return f"{'image' if len(found) == 1 else 'images'} {_numbered(found, numbers)}"


def _numbered(found: list[Occurrence], numbers: _Numbers) -> str:
    return " ".join(str(numbers[each.seq, each.index]) for each in found)


def _message_lines(
    seq: int, message: Json, numbers: _Numbers, found: list[Occurrence]
) -> Iterator[str]:
    is_tool = message["source"]["kind"] == "tool"
    who = "tool" if is_tool else str(message["role"])
    yield f"   {who:<8} {_text(message)}"
    own = [each for each in found if each.seq == seq]
    if own:
        named = [_named(each, numbers) for each in own[:MAX_NAMES]]
        more = [f"and {len(own) - MAX_NAMES} more"] if len(own) > MAX_NAMES else []
        yield " " * 12 + ", ".join([*named, *more])


def _named(each: Occurrence, numbers: _Numbers) -> str:
    return f"{_tied(each, numbers)}{_TIE}({size(each.bytes).replace(' ', _TIE)})"


def _tied(each: Occurrence, numbers: _Numbers) -> str:
    return f"{numbers[each.seq, each.index]} {each.name}".replace(" ", _TIE)


def _omission_lines(
    story: Story, failed_seq: int | None, numbers: _Numbers, found: list[Occurrence]
) -> Iterator[str]:
    """Tell what the first omission after a failed request left out."""
    step = next((s for s in story.omissions if failed_seq is not None and s.seq > failed_seq), None)
    if step is None:
        return
    gone = [each for each in found if not each.is_omitted and _is_omitted_by(story, each, step)]
    names = ", ".join(_tied(each, numbers) for each in gone[:MAX_NAMES])
    more = f" and {len(gone) - MAX_NAMES} more" if len(gone) > MAX_NAMES else ""
    which = "the oldest" if len(gone) == 1 else f"the {len(gone)} oldest"
    yield f"   {'DECIDED':<8} seq {step.seq}, {step.type}: {which} omitted for good: {names}{more}"


def _is_omitted_by(story: Story, image: Occurrence, step: Step) -> bool:
    """Tell whether an image that a request showed is omitted in the first request after a step."""
    after = next((e.request for e in story.exchanges if e.request.seq >= step.seq), None)
    if after is None:
        return image.seq in step.seqs
    return any(
        each.is_omitted and (each.seq, each.index) == (image.seq, image.index)
        for each in occurrences(after.messages())
    )


def _text(message: Json) -> str:
    return " ".join(_texts(message["content"]))


def _texts(content: list[Json]) -> Iterator[str]:
    for block in content:
        kind = block.get("type")
        if kind == "text":
            yield block["text"]
        elif kind == "tool-call":
            yield f"-> calls {block['name']}"
        elif kind == "tool-result":
            yield from _texts(block["content"])


def _event_lines(story: Story) -> Iterator[str]:
    crash = story.crash
    yield (
        f"killed    process {crash.pid}, by SIGKILL in turn 3 while its tool ran: "
        f"{crash.found} of {crash.acknowledged} acknowledged events found"
    )
    yield f"resumed   by process {os.getpid()}, which appended {', '.join(story.closers)}"
    for fork in story.forks:
        yield f"forked    {_fork_text(fork)}"
    for report in story.audits:
        yield f"audited   {_audit_text(report)}"


def _fork_text(fork: Fork) -> str:
    where = "its head" if fork.is_at_head else "the end of turn 1"
    images = f"{plural(fork.kept, 'image')} shown, {fork.omitted} omitted"
    same = "as its parent there" if fork.agrees else "DIFFERS FROM ITS PARENT"
    return f"{fork.session_id} at {where} (seq {fork.boundary}): {images}; {same}"


def _audit_text(report: AuditReport) -> str:
    events = plural(report.event_count, "event")
    views = " = ".join(view.name for view in report.views)
    if report.is_sound:
        return f"{report.session_id}: {events}, every row whole, {views}"
    reasons = [each.message for each in report.findings]
    reasons += [
        f"{view.name} differs at seq {view.difference.seq}"
        for view in report.views
        if view.difference is not None
    ]
    return f"{report.session_id}: NOT SOUND: {'; '.join(reasons)}"


def _verdict_lines(story: Story) -> Iterator[str]:
    if story.agrees:
        yield "Live, restored, forked and detached views agree; no acknowledged event is lost."
    else:
        yield "VIEWS DISAGREE OR EVENTS ARE LOST: see above."


def _next_lines(story: Story, chosen: Place) -> Iterator[str]:
    program, store = program_name(), shlex.quote(str(chosen.database))
    refused = next((e.request.number for e in story.exchanges if e.request.failure), 1)
    session = story.crash.session_id
    yield "Next, try:"
    yield f"  {program} show {session} --request {refused} --store {store}"
    yield f"  {program} audit --all --store {store}"


def program_name() -> str:
    """Return how this program can be started again, as one types it."""
    started = Path(sys.argv[0])
    if started.stem != "everfold":
        return f"{shlex.quote(sys.executable)} -m everfold.cli.main"
    found = shutil.which("everfold")
    is_on_path = found is not None and Path(found).resolve() == started.resolve()
    return "everfold" if is_on_path else shlex.quote(str(started))


def _wrapped(line: str, indent: int) -> Iterator[str]:
    """Break a line between words; what follows the break is indented."""
    text = one_line(line)
    start = text[: len(text) - len(text.lstrip())]
    broken = textwrap.wrap(
        text.lstrip(),
        WIDTH,
        initial_indent=start,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        max_lines=4,
        placeholder=" …",
    )
    yield from (part.replace(_TIE, " ") for part in broken)


def record_of(story: Story, url: str) -> dict[str, Json]:
    """Return the report as JSON (docs/cli.md)."""
    crash = story.crash
    return {
        "store": url,
        "attachments": str(story.attachments),
        "session": crash.session_id,
        "agree": story.agrees,
        "budget": {"representation": "base64", "maxBytes": story.budget.max_bytes},
        "requests": [_exchange_record(exchange) for exchange in story.exchanges],
        "omissions": [
            {"seq": step.seq, "type": step.type, "changed": list(step.seqs)}
            for step in story.omissions
        ],
        "crash": {"acknowledged": crash.acknowledged, "found": crash.found},
        "resumedWith": list(story.closers),
        "forks": [_fork_record(fork) for fork in story.forks],
        "audits": [
            {
                "session": report.session_id,
                "sound": report.is_sound,
                "events": report.event_count,
                "views": {view.name: view.difference is None for view in report.views},
            }
            for report in story.audits
        ],
    }


def _exchange_record(exchange: Exchange) -> dict[str, Json]:
    request = exchange.request
    return {
        "request": request.number,
        "turn": request.turn,
        "seq": request.seq,
        "settledSeq": request.settled_seq,
        "headerSeq": request.header_seq,
        "imageBytes": exchange.load,
        "images": [
            {"seq": each.seq, "index": each.index, "name": each.name, "omitted": each.is_omitted}
            for each in occurrences(request.messages())
        ],
        "messages": [{"seq": seq, "message": message} for seq, message in request.messages()],
        "failure": None if request.failure is None else dict(request.failure),
        "answer": exchange.answer,
    }


def _fork_record(fork: Fork) -> dict[str, Json]:
    return {
        "session": fork.session_id,
        "boundary": fork.boundary,
        "imagesShown": fork.kept,
        "imagesOmitted": fork.omitted,
        "agreesWithParent": fork.agrees,
    }
