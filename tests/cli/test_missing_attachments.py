"""A session whose pictures stayed behind: `import`, `images` and `audit` say what is not there."""

import json
import shutil
from pathlib import Path

import pytest

from everfold.attachments.admission import Source, admit
from everfold.attachments.ids import id_of
from everfold.host.opening import open_sessions
from everfold.profiles.attaching import attachments_of, open_attachments
from everfold.session.deciding import AppendEvent, message
from tests.cli.conftest import Run
from tests.providers.pictures import img

FILE = b"06:40 high"


@pytest.fixture
def album(run: Run, tmp_path: Path) -> Path:
    """A file with the session `album`; of its pictures 0:0 is omitted, 0:1 and 1:0 are shown."""
    source = f"sqlite:///{tmp_path / 'first.sqlite'}"
    sources = [Source(img(300, shade=number), f"{number}.png") for number in range(3)]
    with open_attachments(attachments_of(source, None)) as attachments:
        *refs, tides = admit([*sources, Source(FILE, "tides.csv")], attachments)
    blocks = [{"type": "image", "attachment": ref} for ref in refs]
    user = {"id": "u", "role": "user", "source": {"kind": "user"}}
    batch = (
        message("user/message", {**user, "content": blocks[:2]}),
        message(
            "user/message",
            {**user, "id": "v", "content": [blocks[2], {"type": "file", "attachment": tides}]},
        ),
        AppendEvent("image/offload", {"targets": [{"seq": 0, "imageIndexes": [0]}]}),
    )
    with open_sessions(source) as sessions:
        sessions.create("album")
        sessions.append_batch("album", batch)
    file = tmp_path / "album.jsonl"
    run("export", "album", "--store", source, "-o", str(file))
    return file


def bring(url: str, album: Path) -> None:
    """Copy the attachments of the session's first store to those of another one."""
    place = attachments_of(url, None)
    with (
        open_attachments(str(album.with_name("first.attachments"))) as there,
        open_attachments(place) as here,
    ):
        here.put_all([there.read(id_) for id_ in there.page()])


def test_an_import_names_the_attachments_that_are_not_there(
    run: Run, album: Path, store_url: str
) -> None:
    outcome = run("import", str(album), "--store", store_url)

    assert outcome.status == 0
    assert "session 'album' refers to 4 attachments that it was stored without" in outcome.err
    assert outcome.err.count("sha256:") == 3
    assert "and 1 more; they are not in " in outcome.err
    assert "copy them" in outcome.err


def test_an_import_as_json_holds_every_missing_id(run: Run, album: Path, store_url: str) -> None:
    outcome = run("import", str(album), "--store", store_url, "--json")

    (file,) = json.loads(outcome.out)["files"]
    assert outcome.err == ""
    assert len(file["missingAttachments"]["ids"]) == 4
    assert file["missingAttachments"]["ids"][-1] == id_of(FILE)
    assert ("sqlite" in store_url) is file["missingAttachments"]["place"].endswith(".attachments")


def test_where_everything_is_there_an_import_says_nothing_of_it(
    run: Run, album: Path, store_url: str
) -> None:
    bring(store_url, album)

    outcome = run("import", str(album), "--store", store_url)
    again = run("import", str(album), "--store", store_url, "--id", "again", "--json")

    assert (outcome.status, outcome.err) == (0, "")
    assert "missingAttachments" not in json.loads(again.out)["files"][0]


def test_images_shows_what_is_missing(run: Run, album: Path, store_url: str) -> None:
    run("import", str(album), "--store", store_url)

    outcome = run("images", "album", "--store", store_url)
    record = json.loads(run("images", "album", "--store", store_url, "--json").out)

    lines = outcome.out.splitlines()
    assert [line.split()[1:3] for line in lines[1:4]] == [
        ["omitted,", "missing"],
        ["retained,", "missing"],
        ["retained,", "missing"],
    ]
    assert lines[4] == "3 in all, 2 shown to models, 1 omitted, 3 missing"
    assert lines[5].startswith("missing: they are not in ")
    assert [(each["state"], each["missing"]) for each in record["images"]] == [
        ("omitted", True),
        ("retained", True),
        ("retained", True),
    ]


def test_an_audit_notes_missing_images_that_models_are_shown(
    run: Run, album: Path, store_url: str
) -> None:
    run("import", str(album), "--store", store_url)

    outcome = run("audit", "album", "--store", store_url)
    of_all = run("audit", "--all", "--store", store_url)
    record = json.loads(run("audit", "album", "--store", store_url, "--json").out)

    assert (outcome.status, of_all.status) == (0, 0)
    assert "album: sound, 3 events" in outcome.out
    assert "note: the log shows models 2 images without bytes (0:1, 1:0): " in outcome.out
    assert "note: the log shows models 2 images without bytes" in of_all.out
    assert record["sound"] is True
    assert [each["image"] for each in record["missing"]] == ["0:1", "1:0"]


def test_nothing_is_missing_once_the_attachments_are_copied(
    run: Run, album: Path, store_url: str
) -> None:
    run("import", str(album), "--store", store_url)
    bring(store_url, album)

    images = run("images", "album", "--store", store_url)
    audited = run("audit", "album", "--store", store_url)

    assert images.out.endswith("3 in all, 2 shown to models, 1 omitted\n")
    assert "missing" not in run("images", "album", "--store", store_url, "--json").out
    assert "bytes" not in audited.out
    assert "missing" not in run("audit", "album", "--store", store_url, "--json").out


def test_a_copied_folder_is_a_backup(run: Run, album: Path, sqlite_url: str) -> None:
    place = attachments_of(sqlite_url, None)
    assert place is not None
    shutil.copytree(album.with_name("first.attachments"), place)

    outcome = run("import", str(album), "--store", sqlite_url)

    assert (outcome.status, outcome.err) == (0, "")


def test_looking_for_attachments_makes_no_folder(run: Run, album: Path, sqlite_url: str) -> None:
    place = attachments_of(sqlite_url, None)
    assert place is not None

    run("import", str(album), "--store", sqlite_url)
    run("audit", "album", "--store", sqlite_url)
    run("images", "album", "--store", sqlite_url)

    assert not Path(place).exists()


def test_a_profile_says_where_attachments_are(
    run: Run, album: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(album.parent)
    Path("everfold.toml").write_text(
        'extends = "scripted"\nattachments = "first.attachments"\n', "utf-8"
    )

    outcome = run("import", str(album), "--store", sqlite_url)

    assert (outcome.status, outcome.err) == (0, "")


def test_a_folder_of_attachments_that_cannot_be_used_is_named_with_the_reason(
    run: Run, album: Path, sqlite_url: str
) -> None:
    place = attachments_of(sqlite_url, None)
    assert place is not None
    shutil.copytree(album.with_name("first.attachments"), place)
    Path(place, "everfold-attachments").write_bytes(b"99\n")

    outcome = run("import", str(album), "--store", sqlite_url)

    assert outcome.status == 0
    assert "this program knows 1" in outcome.err
