"""Tools of modules that lie beside the profile."""

import subprocess
import sys
from pathlib import Path

import pytest

from everfold.profiles.errors import ProfileError
from everfold.profiles.tools import tools_of

TIDE = '''
def tide(hour: int) -> str:
    """Return the tide at an hour."""
    return "high"
'''


@pytest.fixture(autouse=True)
def _own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_a_module_beside_the_profile_is_found(tmp_path: Path) -> None:
    (tmp_path / "harbour_beside.py").write_text(TIDE)

    (found,) = tools_of(["harbour_beside:tide"], "profile 'p'", tmp_path)

    assert found.name == "tide"


def test_an_installed_module_is_taken_before_one_beside_the_profile(tmp_path: Path) -> None:
    (tmp_path / "textwrap.py").write_text("raise RuntimeError('not this one')\n")

    (found,) = tools_of(["textwrap:dedent"], "profile 'p'", tmp_path)

    assert found.name == "dedent"
    assert str(tmp_path) not in sys.path


def test_a_module_that_is_nowhere_is_refused_with_the_places_for_it(tmp_path: Path) -> None:
    with pytest.raises(ProfileError) as refused:
        tools_of(["nowhere_x.y:z"], "profile 'p'", tmp_path)

    assert str(refused.value) == (
        "profile 'p', tools: 'nowhere_x.y:z' cannot be loaded: ModuleNotFoundError: No module named "
        f"'nowhere_x'; install it, put it into {str(tmp_path)!r}, or name its folder in PYTHONPATH"
    )


def test_what_a_module_itself_lacks_is_no_fault_of_its_place(tmp_path: Path) -> None:
    (tmp_path / "harbour_lacking.py").write_text("import nowhere_x\n")

    with pytest.raises(ProfileError, match=r"No module named 'nowhere_x'$"):
        tools_of(["harbour_lacking:tide"], "profile 'p'", tmp_path)


def test_the_command_line_finds_a_tool_beside_the_profile(tmp_path: Path) -> None:
    (tmp_path / "harbour_beside.py").write_text(TIDE)
    (tmp_path / "p.toml").write_text('extends = "scripted"\ntools = ["harbour_beside:tide"]\n')
    command = [sys.executable, "-P", "-m", "everfold.cli.main", "run", "hi"]

    done = subprocess.run(
        [*command, "--profile", str(tmp_path / "p.toml"), "--store", str(tmp_path / "a.db")],
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, b"You said 'hi'; I see 0 image(s).\n")
