"""The README's Python runs as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.providers.pictures import img

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PRINTING = re.findall(r"```python\n((?:(?!```).)*)```\n\nIt prints `([^`]+)`", README, re.DOTALL)
"""Blocks and what is said right after them that they print."""

EXPORTED = dict(re.findall(r"^\$ export (\w+)=(\S+)", README, re.MULTILINE))
READING = re.findall(r"^\$ everfold ((?:list|show|images)\b[^#\n]*)", README, re.MULTILINE)
"""Commands that look at the session of the first block."""


def run(block: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a block in a folder that holds a picture, and return what it did."""
    (folder / "quay.png").write_bytes(img(300))
    script = folder / "example.py"
    script.write_text(block, "utf-8")
    return subprocess.run(
        [sys.executable, str(script)], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_of_python_runs_as_printed(number: int, tmp_path: Path) -> None:
    done = run(BLOCKS[number], tmp_path)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("block", "said"), PRINTING)
def test_a_block_prints_what_the_readme_says(block: str, said: str, tmp_path: Path) -> None:
    assert run(block, tmp_path).stdout == f"{said}\n"


def test_four_blocks_say_what_they_print() -> None:
    assert len(PRINTING) == 4


@pytest.mark.parametrize("command", READING)
def test_a_command_finds_the_session_that_the_first_block_made(
    command: str, tmp_path: Path
) -> None:
    run(BLOCKS[0], tmp_path)

    done = subprocess.run(
        [sys.executable, "-m", "everfold.cli.main", *command.split()],
        cwd=tmp_path,
        env={**os.environ, **EXPORTED},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_three_commands_look_at_the_session_of_the_first_block() -> None:
    assert len(READING) == 3


def test_the_first_session_takes_ten_lines_at_most_to_read() -> None:
    lines = [line for line in BLOCKS[0].splitlines() if line.strip()]

    assert len(lines) <= 10
