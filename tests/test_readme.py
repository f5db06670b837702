"""The README's Python runs as printed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_of_python_runs_as_printed(number: int, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(BLOCKS[number], "utf-8")

    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_the_first_session_prints_what_the_readme_says(tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(BLOCKS[0], "utf-8")

    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout == "user When does the ferry leave?\n"
    assert "It prints `user When does the ferry leave?`" in README


def test_the_first_session_takes_ten_lines_at_most_to_read() -> None:
    lines = [line for line in BLOCKS[0].splitlines() if line.strip()]

    assert len(lines) <= 10
