"""The demonstration end to end: with drawn images, with the user's own, and with bad ones."""

import json
import os
import re
import shlex
import stat
from dataclasses import replace
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from everfold.attachments.admission import admit
from everfold.attachments.filesystem import FileAttachments
from everfold.audit.auditing import audit
from everfold.cli.demo.place import Place, sources_of
from everfold.cli.demo.report import lines_of
from everfold.cli.demo.story import play
from everfold.cli.demo.tool import image_block
from everfold.host.opening import open_sessions
from everfold.llm.budgets import ImageBudget, required_offload
from tests.cli.conftest import Run
from tests.cli.programs import ENTRY_POINT, run_on_terminal, run_process

Report = dict[str, Any]


def picture(kind: str, size: tuple[int, int] = (320, 200)) -> bytes:
    file = BytesIO()
    Image.linear_gradient("L").resize(size).convert("RGB").save(file, kind)
    return file.getvalue()


@pytest.fixture
def own_images(tmp_path: Path) -> list[Path]:
    """A PNG, a JPEG and a PNG that bears the wrong extension."""
    files = {"one.png": "PNG", "two words.jpg": "JPEG", "three.gif": "PNG"}
    paths = []
    for width, (name, kind) in enumerate(files.items(), 300):
        path = tmp_path / name
        path.write_bytes(picture(kind, (width, 200)))
        paths.append(path)
    return paths


def demo(run: Run, tmp_path: Path, *images: Path) -> Report:
    outcome = run("demo", *map(str, images), "--store", str(tmp_path / "d" / "x.sqlite"), "--json")
    assert (outcome.status, outcome.err) == (0, "")
    report: Report = json.loads(outcome.out)
    return report


def test_the_demo_agrees_on_every_view(run: Run, tmp_path: Path) -> None:
    report = demo(run, tmp_path)

    assert report["agree"] is True
    assert [each["agreesWithParent"] for each in report["forks"]] == [True, True]
    assert all(
        each["views"] == {"live": True, "restored": True, "detached": True}
        for each in report["audits"]
    )


def test_the_killed_process_lost_no_acknowledged_event(run: Run, tmp_path: Path) -> None:
    report = demo(run, tmp_path)

    assert report["crash"]["acknowledged"] == report["crash"]["found"] > 20
    assert report["resumedWith"] == ["tool/result", "step/end", "turn/end", "session/end-seed"]


def test_the_route_refuses_by_the_real_arithmetic_over_the_exact_bytes(
    run: Run, tmp_path: Path
) -> None:
    report = demo(run, tmp_path)
    refused = next(each for each in report["requests"] if each["failure"])
    store = FileAttachments(report["attachments"])
    lengths = [
        len(store.read(block["attachment"]["attachmentId"]))
        for each in refused["messages"]
        for block in each["message"]["content"]
        if block["type"] == "image"
    ]
    limit = report["budget"]["maxBytes"]

    count = required_offload(lengths, ImageBudget("base64", limit, byte_quantum=limit // 8))

    assert refused["failure"]["code"] == "IMAGE_OFFLOAD_REQUIRED"
    assert refused["failure"]["offloadImages"] == count == 2


def test_an_omission_holds_for_every_later_request(run: Run, tmp_path: Path) -> None:
    report = demo(run, tmp_path)

    omitted = [
        {(image["seq"], image["index"]) for image in each["images"] if image["omitted"]}
        for each in report["requests"]
    ]
    assert omitted[0] == omitted[1] == set()
    assert omitted[2] == {(3, 0), (3, 1)}
    assert all(earlier <= later for earlier, later in pairwise(omitted))


def test_a_fork_before_the_omission_still_shows_the_images(run: Run, tmp_path: Path) -> None:
    past, head = demo(run, tmp_path)["forks"]

    assert (past["imagesShown"], past["imagesOmitted"]) == (2, 0)
    assert head["imagesOmitted"] == 2


def test_the_log_gives_a_reason_for_every_header(run: Run, tmp_path: Path) -> None:
    report = demo(run, tmp_path)

    with open_sessions(report["store"]) as sessions:
        headers = [e.data for e in sessions.log(report["session"]) if e.type == "request/header"]
    assert [each["reason"] for each in headers] == ["initial", "series", "resume"]


def test_what_is_left_is_an_ordinary_store(run: Run, tmp_path: Path) -> None:
    report = demo(run, tmp_path)

    with open_sessions(report["store"], read_only=True) as sessions:
        listed = [each.stream_id for each in sessions.summaries()]
        sound = [audit(sessions, each).is_sound for each in listed]

    assert (listed, sound) == (["session-1", "session-2", "session-3"], [True] * 3)


def test_ones_own_images_are_used(run: Run, tmp_path: Path, own_images: list[Path]) -> None:
    report = demo(run, tmp_path, *own_images)

    names = [image["name"] for image in report["requests"][1]["images"]]
    assert names == ["one.png", "two words.jpg", "three.gif"]
    assert report["agree"] is True


def test_the_true_type_of_an_image_is_stored(
    run: Run, tmp_path: Path, own_images: list[Path]
) -> None:
    report = demo(run, tmp_path, *own_images)

    blocks = [
        block["attachment"]["mediaType"]
        for each in report["requests"][1]["messages"]
        for block in each["message"]["content"]
        if block["type"] == "image"
    ]
    assert blocks == ["image/png", "image/jpeg", "image/png"]


def test_one_image_alone_is_sent_twice_and_stored_once(
    run: Run, tmp_path: Path, own_images: list[Path]
) -> None:
    report = demo(run, tmp_path, own_images[0])

    assert [each["name"] for each in report["requests"][1]["images"]] == ["one.png", "one.png"]
    assert FileAttachments(report["attachments"]).sizes().count == 2
    assert report["agree"] is True


def test_what_was_changed_about_an_image_is_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "wide.png"
    path.write_bytes(picture("PNG", (2400, 30)))

    outcome = run("demo", str(path), "--store", str(tmp_path / "d" / "x.sqlite"))

    assert outcome.status == 0
    assert outcome.err.startswith("note: wide.png: scaled from 2400 x 30 to 2000 x ")


@pytest.mark.parametrize("count", [2, 5, 20])
def test_any_number_of_images_plays_through(run: Run, tmp_path: Path, count: int) -> None:
    paths = [tmp_path / f"{number}.png" for number in range(count)]
    for number, path in enumerate(paths):
        path.write_bytes(picture("PNG", (40 + 30 * (number % 7), 60 + number)))

    report = demo(run, tmp_path, *paths)

    assert report["agree"] is True
    assert report["omissions"] != []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("torn.png", picture("PNG")[:300]),
        ("empty.jpg", b""),
        ("letter.png", b"Dear reader, this is no picture."),
        ("zeros.jpg", b"\xff\xd8\xff" + bytes(500)),
    ],
)
def test_a_bad_image_is_refused_by_name_and_nothing_is_left(
    run: Run, tmp_path: Path, own_images: list[Path], name: str, content: bytes
) -> None:
    bad = tmp_path / name
    bad.write_bytes(content)
    before = sorted(tmp_path.rglob("*"))

    outcome = run(
        "demo", str(own_images[0]), str(bad), "--store", str(tmp_path / "d" / "x.sqlite"), "--json"
    )

    error = json.loads(outcome.err)["error"]
    assert (outcome.status, outcome.out, error["code"]) == (1, "", "admission")
    assert name in error["message"]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_bad_image_leaves_no_fresh_directory_either(
    tmp_path: Path, own_images: list[Path]
) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    torn = tmp_path / "torn.png"
    torn.write_bytes(b"\x89PNG\r\n\x1a\n")

    outcome = run_process("demo", str(torn), env={"TMPDIR": str(place)})

    assert outcome.status == 1
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("name", ["missing.png", "."])
def test_a_path_that_is_no_file_is_refused_by_name(run: Run, tmp_path: Path, name: str) -> None:
    outcome = run("demo", str(tmp_path / name), "--store", str(tmp_path / "x.sqlite"))

    assert outcome.status == 1
    assert str(tmp_path / name) in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_everything_that_is_made_is_its_owners_alone(run: Run, tmp_path: Path) -> None:
    """I5."""
    before = os.umask(0o022)
    try:
        demo(run, tmp_path)
    finally:
        os.umask(before)

    made = [tmp_path / "d", *(tmp_path / "d").rglob("*")]
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in made}
    assert modes == {(True, 0o700), (False, 0o600)}


def test_a_path_under_a_file_is_no_place_for_the_demo(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")

    outcome = run("demo", "--store", str(tmp_path / "file" / "x.sqlite"))

    assert outcome.status == 1
    assert "Traceback" not in outcome.err
    assert (tmp_path / "file").read_text() == "mine"


def test_a_store_of_another_program_is_refused_and_left_alone(run: Run, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    database.write_bytes(b"precious bytes of another program")

    outcome = run("demo", "--store", str(database))

    assert outcome.status == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.sqlite"]
    assert database.read_bytes() == b"precious bytes of another program"


def test_a_server_is_no_place_for_the_demo(run: Run) -> None:
    outcome = run("demo", "--store", "postgresql://h/d")

    assert outcome.status == 2


def test_a_store_that_holds_sessions_gets_one_more(run: Run, tmp_path: Path) -> None:
    first = demo(run, tmp_path)

    second = demo(run, tmp_path)

    assert (first["session"], second["session"]) == ("session-1", "session-4")


def test_the_report_fits_a_small_screen_and_its_next_commands_work(tmp_path: Path) -> None:
    outcome = run_process("demo", env={"TMPDIR": str(tmp_path)}, program=ENTRY_POINT)

    lines = outcome.out.splitlines()
    commands = lines[lines.index("Next, try:") + 1 :]
    done = [run_process(program=shlex.split(command)) for command in commands]
    assert outcome.status == 0
    assert len(lines) < 60
    assert all(len(line) <= 80 for line in lines[2 : lines.index("Next, try:")])
    assert [each.status for each in done] == [0, 0]
    assert "4 images, 0 omitted" in done[0].out


def test_the_report_tells_what_was_omitted_and_why(tmp_path: Path) -> None:
    outcome = run_process("demo", env={"TMPDIR": str(tmp_path)})

    told = " ".join(outcome.out.split())
    assert re.search(
        r"2\. turn 2, seq 11: images 1 2 3 4 .* REFUSED IMAGE_OFFLOAD_REQUIRED: 4 images of .* "
        r"DECIDED seq 13, image/offload: the 2 oldest omitted for good: "
        r"1 harbour\.png, 2 quay\.jpg 3\. turn 2, seq 14: images 3 4 .* omitted 1 2",
        told,
    )
    assert "Live, restored, forked and detached views agree; no acknowledged event is lost." in told


def test_a_lost_event_or_a_differing_view_is_a_failure(tmp_path: Path) -> None:
    chosen = Place(tmp_path / "x.sqlite", tmp_path / "attachments")
    attachments = FileAttachments(chosen.attachments)
    blocks = list(map(image_block, admit(sources_of(()), attachments)))
    story = play(chosen.url, attachments, blocks)
    lost = replace(story, crash=replace(story.crash, found=story.crash.found - 1))
    differing = replace(story, forks=(replace(story.forks[0], agrees=False), story.forks[1]))

    told = ["\n".join(lines_of(each, chosen, 4)) for each in (story, lost, differing)]

    assert [each.agrees for each in (story, lost, differing)] == [True, False, False]
    assert ["VIEWS DISAGREE OR EVENTS ARE LOST" in each for each in told] == [False, True, True]
    assert "DIFFERS FROM ITS PARENT" in " ".join(told[2].split())


def test_the_demo_plays_on_a_terminal(tmp_path: Path) -> None:
    outcome = run_on_terminal("demo", env={"TMPDIR": str(tmp_path)})

    assert outcome.status == 0
    assert "Next, try:" in outcome.out
