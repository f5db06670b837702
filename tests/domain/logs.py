"""Hypothesis strategies for whole logs: valid ones, and ones with exactly one fault at the end.

@given(logs())
def test_…(log): session = doors.restore(log.header(), log.records, …)

@given(faulty_logs())
def test_…(broken): assert broken.prefix is valid, and broken.record is refused with broken.code
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.domain.faults import FAULTS, Fault
from tests.domain.kit import assistant, image, system, text, tool_result, user
from tests.domain.model import Json, Log, Record, Writer

Draw = Callable[[st.SearchStrategy[Any]], Any]

WHOLE = 2**53 - 1
texts = st.text(st.characters(codec="utf-8"), max_size=8)
"""Any valid Unicode, NUL and controls too."""

names = st.sampled_from(("a", "b", "née", "\x00", "\U0001f600", "a?", "b@2"))
_floats = st.floats(min_value=-WHOLE, max_value=WHOLE).filter(
    lambda x: x != 0 or math.copysign(1, x) > 0
)
_scalars = st.none() | st.booleans() | st.integers(-WHOLE, WHOLE) | _floats | texts
json_values: st.SearchStrategy[Json] = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
"""Any JSON value that survives a round trip."""

_image_blocks = st.builds(image, st.integers(0, 2)) | st.builds(
    lambda n, mark: image(n, offloaded=mark), st.integers(0, 2), st.booleans()
)
_file = {"type": "file", "attachment": {"attachmentId": "f", "name": "n", "bytes": 1}}
_blocks: st.SearchStrategy[Json] = st.one_of(
    st.builds(text, texts),
    _image_blocks,
    _image_blocks,
    _image_blocks,
    st.just(_file),
    st.builds(lambda value: {"type": "x/unknown", "content": [image()], "v": value}, json_values),
    json_values.filter(lambda value: not isinstance(value, dict)),
)


def _result_block(content: list[Json]) -> Record:
    return {"type": "tool-result", "toolCallId": "inner", "content": content}


_nested: st.SearchStrategy[Json] = st.recursive(
    _blocks,
    lambda inner: st.lists(inner, max_size=3).map(_result_block),
    max_leaves=4,
)
contents: st.SearchStrategy[list[Json]] = st.lists(_nested, max_size=4)
"""Content of a message: blocks of every kind, tool results with images nested in them."""

_turn_end = {"turn": 1, "reason": {"kind": "completed"}}
_log_only: st.SearchStrategy[tuple[str, Json]] = st.one_of(
    st.tuples(st.sampled_from(("todo/write", "session/title", "goal/change")), json_values),
    st.just(("step/start", {"turn": 1, "step": 1})),
    st.just(("step/end", {"turn": 1, "step": 1})),
    st.just(("tool/call", {"turn": 1, "step": 1, "callId": "c", "name": "n", "arguments": "{}"})),
    st.just(("assistant/attempt", {"turn": 1, "step": 1, "stream": []})),
    st.just(("compaction/start", {"compactionId": "k", "turn": 1})),
    st.just(("compaction/end", {"compactionId": "k", "turn": 1})),
    st.builds(
        lambda model, reason: (
            "request/header",
            {"header": {"config": {"provider": "p", "model": model}}, "reason": reason},
        ),
        st.sampled_from(("m", "n")),
        st.sampled_from(("initial", "resume", "change", "series")),
    ),
)


@dataclass
class _Author:
    """Draws what a writer writes next."""

    draw: Draw
    writer: Writer
    is_seeded: bool

    def write(self) -> None:
        actions = [self.user, self.user, self.tool, self.assistant, self.system, self.log_only]
        actions += [self.turn, self.opaque, self.marker]
        writer = self.writer
        if len(writer.nodes) > (1 if writer.is_head_system else 0):
            actions += [self.replace, self.replace]
        if writer.is_head_system:
            actions.append(self.prompt)
        if writer.tool_results:
            actions += [self.rewrite, self.rewrite]
        if writer.with_images:
            actions += [self.omit] * 6
        self.draw(st.sampled_from(actions))()

    def _id(self) -> str:
        return f"{self.draw(names)}-{self.writer.next_seq}"

    def _sources(self) -> list[int] | None:
        if self.writer.next_seq == 0 or self.draw(st.integers(0, 3)):
            return None
        seqs = st.lists(
            st.integers(0, self.writer.next_seq - 1), min_size=1, max_size=3, unique=True
        )
        sources: list[int] = self.draw(seqs)
        return sources

    def user(self) -> None:
        self.writer.append(
            "user/message", user(self._id(), *self.draw(contents)), sources=self._sources()
        )

    def tool(self) -> None:
        data = tool_result(self._id(), *self.draw(contents))
        if self.draw(st.booleans()):
            data["message"]["content"][0]["isError"] = True
            data["error"] = {"name": "E", "code": "C"}
        self.writer.append("tool/result", data, sources=self._sources())

    def assistant(self) -> None:
        call = {"type": "tool-call", "id": "c", "name": "n", "arguments": "{}"}
        content = [*self.draw(contents), *self.draw(st.lists(st.just(call), max_size=1))]
        self.writer.append("assistant/message", assistant(self._id(), *content))

    def system(self) -> None:
        self.writer.append("system/message", system(self._id(), *self.draw(contents)))

    def log_only(self) -> None:
        type_, data = self.draw(_log_only)
        is_ignorable = self.draw(st.integers(0, 9)) == 0
        self.writer.write(type_, data, **({"ignorable": True} if is_ignorable else {}))

    def opaque(self) -> None:
        type_ = self.draw(st.sampled_from(("x/unknown", "x/a?", "x/b@2", "%3F", "é\x00", "")))
        self.writer.write(type_, self.draw(json_values), ignorable=True)

    def turn(self) -> None:
        if self.writer.turn is None:
            self.writer.turns += 1
            self.writer.write("turn/start", {"turn": self.writer.turns})
        else:
            self.writer.write("turn/end", {**_turn_end, "turn": self.writer.turn})

    def marker(self) -> None:
        self.writer.write("session/end-seed", {"inherited": True} if self.is_seeded else {})

    def replace(self) -> None:
        writer = self.writer
        low = 1 if writer.is_head_system else 0
        first = self.draw(st.integers(low, len(writer.nodes) - 1))
        last = self.draw(st.integers(first, len(writer.nodes) - 1))
        more = tuple(self._sources() or ())
        if self.draw(st.booleans()):
            data = user(self._id(), *self.draw(contents))
            writer.replace("user/message", data, first, last, more)
        else:
            data = system(self._id(), *self.draw(contents))
            writer.replace("system/message", data, first, last, more)

    def prompt(self) -> None:
        data = system(self._id(), *self.draw(contents))
        self.writer.replace("system/message", data, 0, 0)

    def rewrite(self) -> None:
        seq = self.draw(st.sampled_from(self.writer.tool_results))
        place = self.writer.nodes.index(seq)
        before = self.writer.records[seq]["data"]
        block = {**before["message"]["content"][0], "content": self.draw(contents)}
        data = {**before, "message": {**before["message"], "content": [block]}}
        self.writer.replace("tool/result", data, place, place)

    def omit(self) -> None:
        writer = self.writer
        seqs = st.lists(st.sampled_from(writer.with_images), min_size=1, max_size=3, unique=True)
        targets: dict[int, list[int]] = {}
        for seq in self.draw(seqs):
            left = writer.retained(seq)
            targets[seq] = sorted(
                self.draw(st.lists(st.sampled_from(left), min_size=1, unique=True))
            )
        writer.omit(targets)


def _written(draw: Draw, max_size: int, *, may_be_seeded: bool = True) -> Writer:
    writer = Writer()
    author = _Author(draw, writer, draw(st.booleans()) if may_be_seeded else False)
    for _ in range(draw(st.integers(0, max_size))):
        author.write()
    return writer


@st.composite
def logs(draw: Draw, max_size: int = 14) -> Log:
    """Draw a valid log of up to `max_size` events; its header says whether it inherits."""
    return _written(draw, max_size).log()


@dataclass(frozen=True)
class Broken:
    """A valid log, and the one event after it that must be refused."""

    prefix: Log
    fault: Fault

    @property
    def records(self) -> tuple[Record, ...]:
        """All records, the refused one last."""
        return (*self.prefix.records, self.fault.record)


@st.composite
def faulty_logs(draw: Draw, max_size: int = 10, *, appendable: bool = False) -> Broken:
    """Draw a valid log and one event that may not follow it.

    Args:
        appendable: only faults that an append can be asked for; an append chooses no seq or time.
    """
    writer = _written(draw, max_size)
    prefix = writer.log()
    possible = [
        fault
        for make in FAULTS
        if (fault := make(writer)) is not None and (fault.is_appendable or not appendable)
    ]
    return Broken(prefix, draw(st.sampled_from(possible)))
