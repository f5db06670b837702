"""Templates of where tools read attachments: what they may hold, and what an attachment makes of them."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.attachments.filesystem import FileAttachments
from everfold.llm.access_paths import AccessPathError, access_path, check_access_path

DIGEST = "0123456789abcdef" * 4
IMAGE: dict[str, Any] = {
    "attachmentId": f"sha256:{DIGEST}",
    "mediaType": "image/jpeg",
    "bytes": 1407,
    "name": "the quay.jpg",
}


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ("/files/{digest}{extension}", f"/files/{DIGEST}.jpg"),
        (
            "https://files.example/{id}/{name}",
            f"https://files.example/sha256:{DIGEST}/the%20quay.jpg",
        ),
        ("/srv/{first}/{second}/{digest}", f"/srv/01/23/{DIGEST}"),
        ("/{{home}}/{digest}", f"/{{home}}/{DIGEST}"),
    ],
)
def test_a_template_is_filled_in_by_an_attachment(template: str, path: str) -> None:
    check_access_path(template)

    assert access_path(template, IMAGE) == path


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("/files", "is the same for every attachment"),
        ("/files/{name}", "is the same for every attachment"),
        ("/files/{hash}", "has no field 'hash'"),
        ("/files/{digest.__class__}", "has no field 'digest.__class__'"),
        ("/files/{digest!r}", "has no field 'digest'"),
        ("/files/{digest:>200}", "has no field 'digest'"),
        ("/files/{}", "has no field ''"),
        ("/files/{digest", "expected '}'"),
    ],
)
def test_a_template_that_leads_to_no_attachment_is_refused(template: str, reason: str) -> None:
    with pytest.raises(AccessPathError, match="access path") as caught:
        check_access_path(template)

    assert reason in str(caught.value)
    assert access_path(template, IMAGE) is None


@pytest.mark.parametrize("name", ["..", ".", "", None, 7])
def test_a_name_that_is_none_is_no_part_of_a_path(name: object) -> None:
    path = access_path("/files/{digest}/{name}", {**IMAGE, "name": name})

    assert path == f"/files/{DIGEST}/{DIGEST}.jpg"


@given(st.text(max_size=20))
def test_a_name_is_one_part_of_a_path(name: str) -> None:
    path = access_path("/files/{digest}/{name}", {**IMAGE, "name": name})

    assert path is not None
    assert len(Path(path).parts) == 4
    assert ".." not in Path(path).parts


@pytest.mark.parametrize("id_", ["file-123", "sha256:0", f"sha256:{'/' * 64}", None])
def test_what_is_kept_elsewhere_has_no_path(id_: object) -> None:
    assert access_path("/files/{digest}", {**IMAGE, "attachmentId": id_}) is None


def test_without_a_template_there_is_no_path() -> None:
    assert access_path(None, IMAGE) is None


@pytest.mark.parametrize("folder", ["files", "odd {name} of a folder"])
def test_a_folder_of_attachments_gives_a_template_of_its_own_files(
    tmp_path: Path, folder: str
) -> None:
    store = FileAttachments(tmp_path / folder)
    id_ = store.put(b"hour,metres")
    template = store.path_template()

    check_access_path(template)
    path = access_path(template, {"attachmentId": id_})

    assert path is not None
    assert path == str(store.path(id_))
    assert Path(path).read_bytes() == b"hour,metres"
