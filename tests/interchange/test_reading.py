"""Files as they lie on disk: torn ends, other line ends, compression, open files, views."""

import io
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import pytest

from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.importing import ImportResult, view_file
from everfold.session.composition import Composition
from everfold.session.deciding import DecisionMeans
from everfold.session.errors import SessionError
from everfold.session.ports import SessionStore
from tests.interchange.files import HEADER, Log, compressed, file_of, frames, line
from tests.interchange.logs import fork, plain_turns

Take = Callable[..., ImportResult]
PLAIN = plain_turns()
EVENTS = PLAIN.count(b"\n") - 1


def test_an_import_stores_exactly_the_events_of_the_file(store: SessionStore, take: Take) -> None:
    result = take(PLAIN)

    assert (result.session_id, result.event_count, result.warnings) == ("session-1", EVENTS, ())
    assert store.version("session-1") == EVENTS + 1
    assert [row.type for row in store.read("session-1", after=EVENTS)] == ["turn/end"]


def test_an_import_is_one_transaction(store: SessionStore, take: Take) -> None:
    take(PLAIN)

    positions = [each.position for each in store.read_all()]

    assert len(positions) == EVENTS + 1


def test_a_given_id_takes_the_place_of_the_files(store: SessionStore, take: Take) -> None:
    result = take(PLAIN, session_id="mine")

    assert result.session_id == "mine"
    assert [each.stream_id for each in store.streams()] == ["mine"]


def test_the_inherited_cut_is_found_in_the_log(
    composition: Composition, means: DecisionMeans, tmp_path: Path
) -> None:
    path = tmp_path / "fork.jsonl"
    path.write_bytes(fork())

    view = view_file(path, composition, means)

    assert view.session.inherited_count == 6


def test_a_header_without_depth_is_taken_with_a_warning(store: SessionStore, take: Take) -> None:
    header = {name: value for name, value in HEADER.items() if name != "delegationDepth"}

    result = take(file_of([], header))

    assert result.warnings == ("line 1 has no delegationDepth; 0 was put in",)


def test_unknown_header_fields_are_kept(store: SessionStore, take: Take) -> None:
    take(file_of([], {**HEADER, "acme": {"tiny": 1e-7}}))

    (created,) = store.read("session-1")

    assert created.data["acme"] == {"tiny": 1e-7}


def test_k2_a_message_before_the_first_step_is_taken(store: SessionStore, take: Take) -> None:
    log = Log()
    log.user()
    log.open_turn(1)
    log.close_turn(1)

    result = take(file_of(log.records))

    assert result.event_count == 5


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_pieces_may_be_cut_anywhere(size: int, store: SessionStore, take: Take) -> None:
    content = compressed(b"\xef\xbb\xbf" + PLAIN.replace(b"\n", b"\r\n"))

    result = take(content[at : at + size] for at in range(0, len(content), size))

    assert result.event_count == EVENTS


def test_an_open_file_is_read(store: SessionStore, take: Take) -> None:
    result = take(io.BytesIO(PLAIN))

    assert result.event_count == EVENTS


def test_a_path_is_read(store: SessionStore, take: Take, tmp_path: Path) -> None:
    path = tmp_path / "session.v3.jsonl.zstd"
    path.write_bytes(compressed(PLAIN))

    result = take(path)

    assert result.event_count == EVENTS
    assert path.read_bytes() == compressed(PLAIN)


@pytest.mark.parametrize("name", ["absent.jsonl", "."])
def test_a_path_that_cannot_be_read_is_refused(name: str, take: Take, tmp_path: Path) -> None:
    with pytest.raises(ImportRefusedError, match="cannot be read") as caught:
        take(tmp_path / name)

    assert caught.value.code == "file"


def test_a_last_line_without_newline_is_dropped_even_if_it_is_complete(
    store: SessionStore, take: Take
) -> None:
    result = take(PLAIN[:-1])

    assert result.event_count == EVENTS - 1
    assert result.warnings == (
        f"line {EVENTS + 1} (seq {EVENTS - 1}) has no newline at its end: a torn write of "
        f"{len(PLAIN.splitlines()[-1])} bytes was dropped",
    )


def test_a_torn_last_frame_is_dropped_with_a_warning(store: SessionStore, take: Take) -> None:
    result = take(compressed(PLAIN)[:-10])

    assert 0 < result.event_count < EVENTS
    assert "the last compressed frame is cut short: a torn write was dropped" in result.warnings


def whole_lines(content: bytes) -> int:
    """Return the number of events in complete lines."""
    return content.count(b"\n") - 1


@pytest.mark.parametrize("back", range(1, 201))
def test_f1_a_cut_loses_the_torn_line_alone(back: int, store: SessionStore, take: Take) -> None:
    cut = PLAIN[:-back]

    result = take(cut)

    assert result.event_count == whole_lines(cut)
    assert len(result.warnings) == (0 if cut.endswith(b"\n") else 1)


@pytest.mark.parametrize("back", range(1, 201))
def test_f1_a_cut_in_a_compressed_file_loses_the_torn_frame_alone(
    back: int, store: SessionStore, take: Take
) -> None:
    parts = frames(PLAIN, batch=1)
    cut = b"".join(parts)[:-back]
    ends = list(accumulate(map(len, parts)))

    result = take(cut)

    assert result.event_count >= sum(end <= len(cut) for end in ends) - 1
    assert result.event_count <= sum(end < len(cut) for end in ends)
    assert bool(result.warnings) is (len(cut) not in ends)


@pytest.mark.parametrize("back", range(1, len(line(HEADER)) + 1))
def test_f1_a_cut_header_is_refused(back: int, store: SessionStore, take: Take) -> None:
    with pytest.raises(ImportRefusedError) as caught:
        take(line(HEADER)[:-back])

    assert (caught.value.line, caught.value.code) == (1, "session-header")
    assert list(store.streams()) == []


def test_f2_what_is_before_the_defect_can_be_viewed(
    composition: Composition, means: DecisionMeans, tmp_path: Path
) -> None:
    lines = PLAIN.splitlines(keepends=True)
    path = tmp_path / "gap.jsonl"
    path.write_bytes(b"".join(lines[:12] + lines[13:]))

    view = view_file(path, composition, means)

    assert view.session.next_seq == 11
    assert [seq for seq, _message in view.session.messages().items()] == [2, 3, 6]
    assert isinstance(view.refusal, SessionError)
    assert (view.refusal.line, view.refusal.seq, view.refusal.code) == (13, 11, "sequence")


def test_a_whole_file_is_viewed_without_refusal(
    composition: Composition, means: DecisionMeans, tmp_path: Path
) -> None:
    path = tmp_path / "whole.jsonl"
    path.write_bytes(PLAIN)

    view = view_file(path, composition, means)

    assert view.refusal is None
    assert view.session.next_seq == EVENTS


def test_a_file_with_a_bad_header_cannot_be_viewed(
    composition: Composition, means: DecisionMeans, tmp_path: Path
) -> None:
    path = tmp_path / "prose.jsonl"
    path.write_text("Dear diary\n")

    with pytest.raises(ImportRefusedError):
        view_file(path, composition, means)
