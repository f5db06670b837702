"""Tables on narrow terminals: a line an item, and what cannot be shown is left out or cut."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.cli.layout import GAP, layout
from everfold.host.opening import open_sessions
from tests.cli.conftest import Run
from tests.cli.programs import run_on_terminal, run_process
from tests.providers.pictures import img


@pytest.fixture
def three(sqlite_url: str) -> str:
    """The URL of a store with two sessions, the second one a fork that was resumed."""
    with open_sessions(sqlite_url) as sessions:
        sessions.create()
        sessions.append("session-1", "session/title", {"title": "t", "source": {"kind": "user"}})
        sessions.resume(sessions.fork("session-1", child_id="session-2"))
    return sqlite_url


def lines_of(out: str) -> list[str]:
    shown = re.sub(r"\x1b\[[0-9;]*m", "", out)
    return [line.rstrip() for line in shown.splitlines() if line.strip()]


@pytest.mark.parametrize("columns", [100, 80, 40, 30])
def test_each_session_is_one_line_of_a_list(three: str, columns: int) -> None:
    outcome = run_on_terminal("list", "--store", three, env={"COLUMNS": str(columns)})

    head, _rule, first, second = lines_of(outcome.out)
    assert head.split()[0] == "SESSION"
    assert (first.split()[0], second.split()[0]) == ("session-1", "session-2")
    assert max(map(len, (head, first, second))) <= columns


def test_a_list_at_80_columns_tells_when_and_what_last_happened(three: str) -> None:
    outcome = run_on_terminal("list", "--store", three, env={"COLUMNS": "80"})

    head, _rule, _first, second = lines_of(outcome.out)
    assert "LAST EVENT" in head
    assert re.search(r"  20\d\d-\d\d-\d\d \d\d:\d\d  session/end-seed ", second)
    assert second.endswith("  session-1")


@pytest.mark.parametrize("columns", [80, 40])
def test_each_image_is_one_line(tmp_path: Path, sqlite_url: str, columns: int) -> None:
    picture = tmp_path / "the-quay-in-the-morning-before-the-ferry-came.png"
    picture.write_bytes(img(300))
    run_process("run", "look", "--image", str(picture), "--store", sqlite_url)

    shown = ("images", "session-1", "--store", sqlite_url)
    outcome = run_on_terminal(*shown, env={"COLUMNS": str(columns)})

    lines = lines_of(outcome.out)
    assert len(lines) == 4
    assert lines[2].split()[1].startswith("retained")
    assert "the-quay" in lines[2]


def test_a_pipe_is_given_every_column_whole(run: Run, three: str) -> None:
    outcome = run("list", "--store", three)

    assert outcome.out.splitlines()[2].split()[-2:] == ["session/end-seed", "session-1"]


@given(natural=st.lists(st.integers(1, 60), min_size=3, max_size=8), width=st.integers(20, 200))
def test_a_layout_keeps_the_first_column_and_never_widens(natural: list[int], width: int) -> None:
    columns = [f"C{index}" for index in range(len(natural))]

    found = layout(columns, natural, width, spare=columns[2:])

    assert found.chosen[:2] == (0, 1)
    assert all(
        each <= natural[index] for index, each in zip(found.chosen, found.widths, strict=True)
    )
    assert sum(found.widths) + GAP * (len(found.widths) - 1) <= width
