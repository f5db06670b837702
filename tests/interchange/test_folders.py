"""Import of folders: one import a session, a report a file, no way out of the folder."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.exporting import export_session
from everfold.interchange.folders import FolderReport, import_folder
from everfold.session.composition import Composition
from everfold.session.deciding import DecisionMeans
from everfold.session.ports import SessionStore
from everfold.store.urls import open_store
from tests.interchange.files import HEADER, compressed, file_of
from tests.interchange.logs import plain_turns
from tests.interchange.old_files import small

TakeFolder = Callable[[Path], FolderReport]


@pytest.fixture
def take_folder(store: SessionStore, composition: Composition, means: DecisionMeans) -> TakeFolder:
    """Import a folder into the store."""
    return lambda folder: import_folder(folder, store, composition, means)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder for session files."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    return folder


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def session(session_id: str) -> bytes:
    return plain_turns(1).replace(b'"id":"session-1"', b'"id":"%b"' % session_id.encode())


def ids(store: SessionStore) -> list[str]:
    return [each.stream_id for each in store.streams()]


def test_a_file_with_the_usual_ending_of_zstandard_is_taken(
    store: SessionStore, take_folder: TakeFolder, root: Path
) -> None:
    put(root / "a.jsonl.zst", compressed(session("a")))

    take_folder(root)

    assert ids(store) == ["a"]


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz", "zip"])
def test_a_packed_file_is_reported_and_not_passed_over(
    store: SessionStore, take_folder: TakeFolder, root: Path, ending: str
) -> None:
    put(root / "a.jsonl", session("a"))
    packed = put(root / f"a.jsonl.{ending}", b"packed")

    report = take_folder(root)

    (refused,) = report.refused
    assert refused.path == packed
    assert refused.refusal is not None
    assert (refused.refusal.code, "unpack it first" in str(refused.refusal)) == (
        "compression",
        True,
    )
    assert ids(store) == ["a"]


def test_the_reference_layout_is_imported(
    store: SessionStore, take_folder: TakeFolder, root: Path
) -> None:
    put(root / "--srv-quay--" / "a" / "session.v3.jsonl", session("a"))
    put(root / "_no-cwd" / "b" / "session.v3.jsonl.zstd", compressed(session("b")))

    report = take_folder(root)

    assert ids(store) == ["a", "b"]
    assert [each.result.session_id for each in report.imported if each.result] == ["a", "b"]
    assert report.refused == ()


def test_e5_one_bad_file_does_not_hide_the_others(
    store: SessionStore, take_folder: TakeFolder, root: Path
) -> None:
    put(root / "bom.jsonl", b"\xef\xbb\xbf" + session("bom"))
    put(root / "crlf.jsonl", session("crlf").replace(b"\n", b"\r\n"))
    put(root / "cut.jsonl", session("cut")[:-1])
    put(root / "empty.jsonl", b"")
    put(root / "plain.jsonl", session("plain"))

    report = take_folder(root)

    assert ids(store) == ["bom", "crlf", "cut", "plain"]
    (refused,) = report.refused
    assert refused.path == root / "empty.jsonl"
    assert refused.refusal is not None
    assert (refused.refusal.line, refused.refusal.code) == (1, "session-header")


def test_k3_the_highest_generation_is_taken(
    store: SessionStore, take_folder: TakeFolder, root: Path
) -> None:
    old = put(root / "a" / "session.jsonl", file_of([], {**HEADER, "version": 0}))
    older = put(root / "a" / "session.v1.jsonl", file_of([], {**HEADER, "version": 1}))
    newest = put(root / "a" / "session.v3.jsonl", plain_turns())

    report = take_folder(root)

    assert ids(store) == ["session-1"]
    assert [each.path for each in report.imported] == [newest]
    assert {each.path: each.superseded_by for each in report.files if each.superseded_by} == {
        old: newest,
        older: newest,
    }


def test_k3_a_damaged_highest_generation_is_reported_and_not_replaced(
    store: SessionStore, take_folder: TakeFolder, root: Path
) -> None:
    put(root / "a" / "session.jsonl", plain_turns())
    newest = put(root / "a" / "session.v3.jsonl", plain_turns().replace(b'"seq":5', b'"seq":6'))

    report = take_folder(root)

    assert ids(store) == []
    (refused,) = report.refused
    assert (refused.path, refused.refusal and refused.refusal.line) == (newest, 7)


def test_k3_a_generation_of_ten_is_above_one_of_nine(
    store: SessionStore, take_folder: TakeFolder, root: Path
) -> None:
    put(root / "a" / "session.v9.jsonl", session("nine"))
    put(root / "a" / "session.v10.jsonl", session("ten"))

    take_folder(root)

    assert ids(store) == ["ten"]


def test_k3_a_session_of_an_old_generation_alone_is_imported(
    store: SessionStore, take_folder: TakeFolder, root: Path
) -> None:
    old = put(root / "a" / "session.jsonl", small(0).content())
    older = put(root / "b" / "session.jsonl", b"damaged\n")
    newest = put(root / "b" / "session.v1.jsonl", small(1).content().replace(b"old-1", b"old-2"))

    report = take_folder(root)

    assert ids(store) == ["old-1", "old-2"]
    assert [each.path for each in report.imported] == [old, newest]
    assert [each.path for each in report.files if each.superseded_by] == [older]


def test_k3_a_generation_that_is_too_new_is_not_replaced_by_an_older_one(
    store: SessionStore, take_folder: TakeFolder, root: Path
) -> None:
    put(root / "a" / "session.v3.jsonl", plain_turns())
    newest = put(root / "a" / "session.v4.jsonl", file_of([], {**HEADER, "version": 4}))

    report = take_folder(root)

    assert ids(store) == []
    (refused,) = report.refused
    assert (refused.path, refused.refusal and refused.refusal.code) == (newest, "format-version")


def test_two_files_of_one_generation_are_both_refused(
    store: SessionStore, take_folder: TakeFolder, root: Path
) -> None:
    put(root / "a" / "session.v3.jsonl", plain_turns())
    put(root / "a" / "session.v3.jsonl.zstd", compressed(plain_turns()))

    report = take_folder(root)

    assert ids(store) == []
    assert [each.path.name for each in report.refused] == [
        "session.v3.jsonl",
        "session.v3.jsonl.zstd",
    ]


def test_the_second_file_of_one_id_is_refused(
    store: SessionStore, take_folder: TakeFolder, root: Path
) -> None:
    put(root / "a.jsonl", session("same"))
    second = put(root / "b.jsonl", session("same"))

    report = take_folder(root)

    (refused,) = report.refused
    assert (refused.path, refused.refusal and refused.refusal.code) == (second, "session-exists")


def test_i8_no_link_is_followed(
    store: SessionStore, take_folder: TakeFolder, root: Path, tmp_path: Path
) -> None:
    outside = put(tmp_path / "outside" / "secret.jsonl", session("secret"))
    (root / "file.jsonl").symlink_to(outside)
    (root / "folder").symlink_to(outside.parent)

    report = take_folder(root)

    assert ids(store) == []
    assert [each.path for each in report.refused] == [root / "file.jsonl", root / "folder"]
    assert all("symbolic link" in str(each.refusal) for each in report.refused)


def test_a_pipe_is_not_waited_for(store: SessionStore, take_folder: TakeFolder, root: Path) -> None:
    os.mkfifo(root / "pipe.jsonl")

    report = take_folder(root)

    (refused,) = report.refused
    assert "not a regular file" in str(refused.refusal)


def test_files_of_other_names_are_left_alone(
    store: SessionStore, take_folder: TakeFolder, root: Path
) -> None:
    put(root / "notes.txt", b"Dear diary")
    put(root / "session.v3.jsonl.bak", plain_turns())

    assert take_folder(root).files == ()


def test_a_folder_that_is_not_there_is_refused(take_folder: TakeFolder, root: Path) -> None:
    with pytest.raises(ImportRefusedError, match="cannot be listed") as caught:
        take_folder(root / "absent")

    assert caught.value.code == "file"


def test_i2_a_folder_of_exports_is_imported_again(
    store: SessionStore,
    take_folder: TakeFolder,
    composition: Composition,
    means: DecisionMeans,
    root: Path,
) -> None:
    names = ["a.b", "a:b", "a_b", "Room", "room", "demo.v1", "demo", "e\u0301", "\u00e9", "CON"]
    for number, name in enumerate(names):
        put(root / f"{number}.jsonl", session(name))
    take_folder(root)
    out = root.parent / "out"
    out.mkdir()
    for name in names:
        export_session(store, name, out)

    with open_store("sqlite://") as other:
        import_folder(out, other, composition, means)
        found = ids(other)

    assert found == sorted(names)
    assert len({path.name.casefold() for path in out.iterdir()}) == len(names)
