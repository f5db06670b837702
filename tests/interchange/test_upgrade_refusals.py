"""Old session files that are refused: each with the line and the seq of the file, and nothing stored."""

from collections.abc import Callable

import pytest

from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.importing import ImportResult
from everfold.session.frozen import Json
from everfold.session.ports import SessionStore
from tests.interchange.old_files import Old, small

Take = Callable[..., ImportResult]
Spoil = Callable[[Old], object]
RUN = {"turn": 1, "step": 1, "index": 0, "dt": [], "texts": ["a"]}
SEQ = 11
"""The next seq of a small log of versions 0 and 1; its next line is 11 too."""


def refused(take: Take, store: SessionStore, old: Old) -> ImportRefusedError:
    """Import a file that is refused, and return how; nothing is stored."""
    with pytest.raises(ImportRefusedError) as caught:
        take(old.content())
    assert list(store.streams()) == []
    return caught.value


def packed(**fields: Json) -> Spoil:
    """Return what adds a packed line with other fields."""

    def spoil(old: Old) -> None:
        line = {"type": "text-chunks", "seq0": SEQ, "time0": 1, "data": RUN}
        old.lines.append({**line, **fields})

    return spoil


def packed_data(**fields: Json) -> Spoil:
    """Return what adds a packed line with other data."""
    return packed(data={**RUN, **fields})


SPOILED: dict[str, tuple[int, Spoil, str]] = {
    "an unknown type": (1, lambda old: old.add("acme/note", {}), "unknown-event"),
    "an ignorable unknown type": (
        1,
        lambda old: old.add("acme/note", {}, ignorable=True),
        "unknown-event",
    ),
    "a type of version 0": (
        1,
        lambda old: old.user("x", type_="steering/message"),
        "unknown-event",
    ),
    "a type of version 3": (0, lambda old: old.add("system/message", {}), "unknown-event"),
    "a delta of headers": (0, lambda old: old.add("request/header-delta", {}), "unknown-event"),
    "a seq too high": (1, lambda old: old.lines.append({**old.lines[-1], "seq": 12}), "sequence"),
    "a packed seq too high": (1, packed(seq0=SEQ + 1), "sequence"),
    "a field too many": (1, lambda old: old.add("turn/start", {}, x=1), "envelope"),
    "a packed field too many": (1, packed(x=1), "envelope"),
    "a packed seq that is text": (1, packed(seq0="1"), "envelope"),
    "a packed time that is text": (1, packed(time0="1"), "envelope"),
    "packed data of another kind": (1, packed(data=[]), "envelope"),
    "packed data without texts": (1, packed(data={**RUN, "args": ["a"]}), "envelope"),
    "a packed call without id": (
        1,
        packed(
            type="tool-call-chunks",
            data={**{k: RUN[k] for k in RUN if k != "texts"}, "args": ["a"]},
        ),
        "envelope",
    ),
    "no packed text": (1, packed_data(texts=[]), "envelope"),
    "packed texts that are none": (1, packed_data(texts=[1]), "envelope"),
    "a gap too many": (1, packed_data(dt=[1]), "envelope"),
    "a gap that is text": (1, packed_data(texts=["a", "b"], dt=["1"]), "envelope"),
    "a delta without chunk": (1, lambda old: old.add("assistant/chunk", {"turn": 1}), "settlement"),
    "a stream in version 1": (
        1,
        lambda old: old.add("assistant/message", {"turn": 1, "step": 1, "stream": []}),
        "settlement",
    ),
    "a source that is not earlier": (
        1,
        lambda old: old.user("x", sourceEventSeqs=[99]),
        "source-refs",
    ),
    "a source that is none": (1, lambda old: old.user("x", sourceEventSeqs=[-0.5]), "source-refs"),
    "a replacement of later messages": (
        1,
        lambda old: old.user("x", surfaceOp={"op": "replace", "start": 2, "end": 99}),
        "surface-op",
    ),
    "a replacement by the names of version 3": (
        1,
        lambda old: old.user("x", surfaceOp={"op": "replace", "startSeq": 2, "endSeq": 2}),
        "surface-op",
    ),
    "a title of no message": (
        1,
        lambda old: old.add("session/title", {"title": "t", "messageSeqs": [99]}),
        "payload",
    ),
    "a prompt of another kind": (1, lambda old: old.header({"text": "x"}), "payload"),
    "a message without id": (1, lambda old: old.user(""), "message-shape"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_bad_record_of_an_old_file_is_named_by_its_own_line_and_seq(
    name: str, store: SessionStore, take: Take
) -> None:
    version, spoil, code = SPOILED[name]
    old = small(version)
    assert (old.next_seq, len(old.lines)) == (SEQ, 10)
    spoil(old)

    error = refused(take, store, old)

    assert (error.line, error.seq, error.code) == (11, SEQ, code)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_prompt_without_any_step_is_refused(
    version: int, store: SessionStore, take: Take
) -> None:
    old = Old(version)
    old.user("x")
    old.header()

    error = refused(take, store, old)

    assert (error.line, error.seq, error.code) == (3, 1, "payload")
    assert "the header has a prompt, and the log has no step" in str(error)


@pytest.mark.parametrize("type_", ["acme/note", "assistant/chunk", "text-chunks", "image/offload"])
def test_a_required_type_that_version_2_does_not_have_is_refused(
    type_: str, store: SessionStore, take: Take
) -> None:
    old = small(2)
    old.add(type_, {})

    error = refused(take, store, old)

    assert (error.line, error.seq, error.code) == (9, 7, "unknown-event")
    assert f"no event {type_!r} of format version 2 can be brought to version 3" in str(error)


HEADERS = {
    "a length that is text": (1, {"seedLength": "4"}, "session-header"),
    "a length below 0": (0, {"seedLength": -1}, "session-header"),
    "a field of version 2": (1, {"isSeeded": False}, "session-header"),
    "a field of version 1": (2, {"seedLength": 0}, "session-header"),
    "more inherited than there is": (1, {"seedLength": 12}, "seed-cut"),
    "a cut inside a stream": (1, {"seedLength": 5}, "seed-cut"),
    "a relative folder": (0, {"cwd": "srv"}, "session-header"),
    "a fork without its marker": (2, {"isSeeded": True}, "seed-cut"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_bad_header_of_an_old_file_is_refused_in_line_1(
    name: str, store: SessionStore, take: Take
) -> None:
    version, fields, code = HEADERS[name]
    old = small(version)
    old.lines[0] |= fields

    error = refused(take, store, old)

    assert (error.line, error.seq, error.code) == (1, None, code)
