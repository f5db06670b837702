"""Reports from the field, group E: odd text, odd numbers, raw bytes, from one database to the other."""

import base64
import hashlib
import math
from pathlib import Path
from typing import Any

import pytest

from everfold.attachments.admission import Source, admit
from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions, VersionSpec
from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions
from everfold.interchange.exporting import export_session
from everfold.interchange.importing import import_session
from everfold.session.deciding import AppendEvent, message
from everfold.session.errors import LosslessError
from everfold.session.frozen import Json, thaw
from tests.attachments.images import encoded, noise
from tests.domain.kit import text, tool_result
from tests.field_reports.kit import shown
from tests.host.kit import hello, types

NUL = "W\x00s\x00l\x00"
ESCAPES = ["\\u0000", "\\\\u0000", "\\\\\\u0000", "\\u0000\x00", "\\x00", "%00"]


def through_a_file(sessions: Sessions, session_id: str, folder: Path) -> list[Json]:
    """Export a session, import it into another store, and return what the model sees there."""
    path = folder / "through.jsonl"
    export_session(sessions.store, session_id, path)
    with open_sessions("sqlite://") as other:
        import_session(path, other.store, other.composition, other.means)
        return shown(other, session_id)


def test_e1_nul_characters_are_kept_in_text_and_in_keys(sessions: Sessions, tmp_path: Path) -> None:
    sessions.create("s")
    data = tool_result("c", text(NUL), meta={"a\x00b": NUL, "\x00": [{"\x00\x00": None}]})

    sessions.append_batch("s", [message("tool/result", data)])

    (stored,) = sessions.log("s")
    assert thaw(stored.data) == data
    assert shown(sessions, "s") == through_a_file(sessions, "s", tmp_path) == [data["message"]]


@pytest.mark.parametrize("escape", ESCAPES)
def test_e2_text_that_holds_an_escape_is_kept_as_it_is(
    sessions: Sessions, tmp_path: Path, escape: str
) -> None:
    sessions.create("s")
    told = hello("u", text(escape))

    sessions.append_batch("s", [told])
    sessions.append("s", "acme/note", {escape: escape}, {"ignorable": True})

    assert [thaw(event.data) for event in sessions.log("s")] == [told.data, {escape: escape}]
    assert through_a_file(sessions, "s", tmp_path) == [told.data]


BAD_NUMBERS = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
    "1e400": float("1e400"),
    "-0.0": -0.0,
    "2**63": 2**63,
    "2**53+1": 2**53 + 1,
    "-(2**53+1)": -(2**53) - 1,
}


@pytest.mark.parametrize("number", BAD_NUMBERS.values(), ids=BAD_NUMBERS.keys())
def test_e3_a_number_that_json_would_change_is_refused_with_its_whole_batch(
    sessions: Sessions, number: float
) -> None:
    sessions.create("s")
    bad = tool_result("c", text("done"), meta={"rows": [1, {"mean": number}]})

    with pytest.raises(LosslessError) as caught:
        sessions.append_batch("s", [hello("u-1"), message("tool/result", bad), hello("u-2")])

    assert caught.value.path.endswith("meta.rows[1].mean")
    assert types(sessions, "s") == []


def test_e3_numbers_at_the_edge_are_kept(sessions: Sessions, tmp_path: Path) -> None:
    sessions.create("s")
    numbers = [2**53 - 1, -(2**53) + 1, 5e-324, 0.1, 1.5, 0]

    sessions.append("s", "todo/write", {"todos": numbers})

    (stored,) = sessions.log("s")
    assert thaw(stored.data) == {"todos": numbers}
    assert through_a_file(sessions, "s", tmp_path) == []


def test_e4_a_picture_has_the_same_digest_at_each_step(sessions: Sessions, tmp_path: Path) -> None:
    files = FileAttachments(tmp_path / "attachments")
    (ref,) = admit([Source(encoded(noise(150, 150), "PNG"), "shot.png")], files)
    digest = hashlib.sha256(files.read(ref["attachmentId"])).hexdigest()
    image = {"type": "image", "attachment": dict(ref)}
    sessions.create("s")
    sessions.append_batch("s", [hello("u", text("see"), image)])

    (appended,) = shown(sessions, "s")
    (imported,) = through_a_file(sessions, "s", tmp_path)
    request = RequestVersions(files).version(imported["content"][1]["attachment"], VersionSpec())

    assert appended == imported
    assert imported["content"][1]["attachment"]["attachmentId"] == f"sha256:{digest}"
    assert hashlib.sha256(files.read(request.attachment_id)).hexdigest() == digest


def test_e4_seventy_thousand_random_bytes_come_back_from_base64(
    sessions: Sessions, tmp_path: Path
) -> None:
    data = noise(1, 70_000, "L").tobytes()
    sessions.create("s")
    sessions.append_batch("s", [hello("u", text(base64.b64encode(data).decode()))])

    (imported,) = through_a_file(sessions, "s", tmp_path)

    assert base64.b64decode(imported["content"][0]["text"]) == data


@pytest.mark.parametrize(
    "raw", [b"\x00\xff", bytearray(b"ab"), memoryview(b"ab"), {1, 2}, object()]
)
def test_e4_a_tool_that_returns_what_json_cannot_hold_is_refused_by_place(
    sessions: Sessions, raw: Any
) -> None:
    sessions.create("s")
    block = {"type": "text", "text": raw}

    with pytest.raises(LosslessError) as caught:
        sessions.append_batch("s", [AppendEvent("todo/write", {}), hello("u", block)])

    assert caught.value.path.endswith("content[0].text")
    assert types(sessions, "s") == []
