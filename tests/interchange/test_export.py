"""Exported files: the bytes, and how they come to be on disk."""

import io
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from everfold.interchange.errors import ExportRefusedError
from everfold.interchange.exporting import export_session
from everfold.interchange.importing import ImportResult, import_session
from everfold.interchange.js_json import number_text, stringify
from everfold.session.composition import Composition
from everfold.session.deciding import DecisionMeans
from everfold.session.errors import CorruptStreamError, IdError, SessionNotFoundError
from everfold.session.ports import SessionStore
from everfold.store.urls import open_store
from tests.interchange.files import compressed, normal
from tests.interchange.logs import LOGS, plain_turns

Take = Callable[..., ImportResult]


def exported(store: SessionStore, session_id: str) -> bytes:
    out = io.BytesIO()
    export_session(store, session_id, out)
    return out.getvalue()


@pytest.mark.parametrize("shape", LOGS)
def test_an_imported_log_is_exported_with_the_same_bytes_up_to_key_order(
    shape: str, store: SessionStore, take: Take
) -> None:
    content = LOGS[shape]()

    result = take(content)

    assert normal(exported(store, result.session_id)) == normal(content)
    assert result.event_count == content.count(b"\n") - 1


@pytest.mark.parametrize("shape", LOGS)
def test_e1_an_exported_log_is_the_same_from_either_database(
    shape: str, store_url: str, composition: Composition, means: DecisionMeans
) -> None:
    content = LOGS[shape]()

    with open_store(store_url) as opened:
        result = import_session([content], opened, composition, means)
        out = exported(opened, result.session_id)

    assert normal(out) == normal(content)


@pytest.mark.parametrize("shape", LOGS)
def test_a_compressed_log_with_other_line_ends_is_exported_as_the_plain_one(
    shape: str, store: SessionStore, take: Take
) -> None:
    content = LOGS[shape]()

    result = take(compressed(b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n")))

    assert normal(exported(store, result.session_id)) == normal(content)


def test_the_order_of_the_fields_is_that_of_the_reference_system(
    store: SessionStore, take: Take
) -> None:
    content = plain_turns()

    result = take(content)

    assert exported(store, result.session_id) == content


NUMBERS = [
    "1e-7",
    "0.000001",
    "0.0000015",
    "1.5e-7",
    "5e-324",
    "2.2250738585072014e-308",
    "-1e-7",
    "0.1",
    "123456.789",
    "9007199254740991",
    "-0.5",
    "1234567890.1234567",
    "0.30000000000000004",
]


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_keeps_javascripts_spelling(text: str, store: SessionStore, take: Take) -> None:
    first, *_rest = plain_turns().splitlines(keepends=True)
    event = b'{"type":"todo/write","seq":0,"time":1,"data":{"n":[%b]}}\n' % text.encode()

    take(first + event)

    assert exported(store, "session-1") == first + event


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (100.0, "100"),
        (1e20, "100000000000000000000"),
        (1.2e21, "1.2e+21"),
        (1e21, "1e+21"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (123e-9, "1.23e-7"),
        (0.00000123, "0.00000123"),
    ],
)
def test_numbers_are_spelled_as_javascript_does(value: float, text: str) -> None:
    assert number_text(value) == text
    assert stringify({"n": [value]}) == b'{"n":[%b]}' % text.encode()


def test_text_that_looks_like_a_fraction_is_left_alone() -> None:
    assert stringify(['":1.0,[1e5', 0.5]) == rb'["\":1.0,[1e5",0.5]'


def test_an_export_takes_its_place_complete_and_for_its_owner_alone(
    store: SessionStore, take: Take, tmp_path: Path
) -> None:
    content = plain_turns()
    take(content)
    folder = tmp_path / "out"
    folder.mkdir()
    before = os.umask(0o022)

    try:
        result = export_session(store, "session-1", folder)
    finally:
        os.umask(before)

    path = folder / "session-1.v3.jsonl"
    assert result.path == path
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o600
    assert result.event_count == content.count(b"\n") - 1
    assert list(folder.iterdir()) == [path]


def test_a_file_that_is_there_is_not_overwritten(
    store: SessionStore, take: Take, tmp_path: Path
) -> None:
    take(plain_turns())
    path = tmp_path / "mine.jsonl"
    path.write_text("mine")

    with pytest.raises(ExportRefusedError, match=r"mine\.jsonl is there already"):
        export_session(store, "session-1", path)

    assert path.read_text() == "mine"


def test_a_file_that_is_there_is_overwritten_when_that_is_asked_for(
    store: SessionStore, take: Take, tmp_path: Path
) -> None:
    take(plain_turns())
    path = tmp_path / "mine.jsonl"
    path.write_text("mine")

    export_session(store, "session-1", path, overwrite=True)

    assert path.read_bytes() == plain_turns()


@pytest.mark.parametrize("overwrite", [False, True])
def test_i8_a_symbolic_link_is_not_written_through(
    store: SessionStore, take: Take, tmp_path: Path, overwrite: bool
) -> None:
    take(plain_turns())
    target = tmp_path / "target"
    target.write_text("precious")
    path = tmp_path / "link.jsonl"
    path.symlink_to(target)

    if overwrite:
        export_session(store, "session-1", path, overwrite=True)
    else:
        with pytest.raises(ExportRefusedError):
            export_session(store, "session-1", path)

    assert target.read_text() == "precious"
    assert path.is_symlink() is not overwrite


def test_a_failed_export_leaves_no_file(store: SessionStore, take: Take, tmp_path: Path) -> None:
    take(plain_turns())

    with pytest.raises(ExportRefusedError, match="cannot be written: No such file"):
        export_session(store, "session-1", tmp_path / "absent" / "a.jsonl")

    assert not (tmp_path / "absent").exists()


def test_a_log_that_breaks_off_leaves_no_file(
    store: SessionStore, take: Take, tmp_path: Path
) -> None:
    take(plain_turns())
    folder = tmp_path / "out"
    folder.mkdir()
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as database:
        database.execute("DELETE FROM stored_events WHERE originator_version = 11")
        database.commit()

    with pytest.raises(CorruptStreamError) as caught:
        export_session(store, "session-1", folder / "a.jsonl")

    assert caught.value.seq == 9
    assert list(folder.iterdir()) == []


def test_c8_an_unreadable_event_is_named_and_what_is_before_it_can_be_saved(
    store: SessionStore, take: Take, tmp_path: Path
) -> None:
    take(plain_turns())
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as database:
        database.execute("UPDATE stored_events SET state = 'x{' WHERE originator_version = 11")
        database.commit()

    with pytest.raises(CorruptStreamError, match="'session-1' cannot be read at seq 9") as caught:
        export_session(store, "session-1", tmp_path / "whole.jsonl")
    assert caught.value.seq == 9
    export_session(store, "session-1", tmp_path / "prefix.jsonl", upto_seq=8)

    assert not (tmp_path / "whole.jsonl").exists()
    prefix = (tmp_path / "prefix.jsonl").read_bytes()
    assert prefix == b"".join(plain_turns().splitlines(keepends=True)[:10])
    assert [each.stream_id for each in store.streams()] == ["session-1"]


@pytest.mark.parametrize(("upto_seq", "count"), [(-1, 0), (0, 1), (5, 6), (10_000, 25)])
def test_a_prefix_is_exported(store: SessionStore, take: Take, upto_seq: int, count: int) -> None:
    take(plain_turns())
    out = io.BytesIO()

    result = export_session(store, "session-1", out, upto_seq=upto_seq)

    assert result.event_count == count
    assert out.getvalue() == b"".join(plain_turns().splitlines(keepends=True)[: count + 1])


def test_an_unknown_session_is_not_found(store: SessionStore, tmp_path: Path) -> None:
    with pytest.raises(SessionNotFoundError):
        export_session(store, "nobody", tmp_path)


@pytest.mark.parametrize("hostile", ["../../x", "..\\x", "a/b", ".", "/etc/x", "\x00", "x" * 300])
def test_i1_an_id_that_is_a_path_writes_nothing(
    store: SessionStore, tmp_path: Path, hostile: str
) -> None:
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(IdError):
        export_session(store, hostile, tmp_path)

    assert sorted(tmp_path.rglob("*")) == before


def test_every_line_is_json_of_its_own(store: SessionStore, take: Take) -> None:
    take(LOGS["odd_values"]())

    lines = exported(store, "session-1").split(b"\n")

    assert lines.pop() == b""
    assert [json.loads(each)["type"] for each in lines] == [
        "session",
        "user/message",
        "todo/write",
    ]
