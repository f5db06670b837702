"""The Python of the pages on agents, plugins and reading runs as printed, and prints what they say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"```python\n(.*?)```(.*?)(?=```|\Z)", re.DOTALL)
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")

PRINTED = {
    "agent.md": [
        "completed At nine.\n",
        "At nine.\n",
        "['anthropic', 'openai', 'local']\n",
        "20 4\n",
        'Booked, at high water.\n{"metres":2.5}\n2 seats are booked\n',
        "You said 'What is this?'; I see 1 image(s).\n",
        "At nine.\n['llm/retry', 'llm/retry-started']\n",
        "At nine. [completed]\n",
        "turn/end aborted\n",
        "turn-open\nGood morning.\nGood morning.\n",
        "assistant/message ['system', 'user']\n"
        "assistant/message ['system', 'user', 'assistant', 'user']\n"
        "compaction/request ['system', 'user', 'assistant', 'user']\n",
    ],
    "reading.md": [
        "[1, 2]\n2 of 3\nharbour-7-at-ten Or at ten?\n['harbour-7', 'harbour-7-at-ten']\n",
        "When does the ferry leave?\n['echo'] 0.00014\n3\n",
        "True 1 ()\n",
    ],
    "plugins.md": ["completed\nerror\n{'tokens': 13}\n['acme/budget-stopped']\n"],
}


def blocks(page: str) -> list[tuple[str, str]]:
    """Return the programs of a page, each with the text after it."""
    return BLOCK.findall((DOCS / page).read_text("utf-8"))


@pytest.mark.parametrize(
    ("page", "number"),
    [(page, number) for page, printed in PRINTED.items() for number in range(len(printed))],
)
def test_a_program_prints_what_the_page_says(page: str, number: int, tmp_path: Path) -> None:
    program = tmp_path / "example.py"
    program.write_text(blocks(page)[number][0], "utf-8")
    environment = {name: value for name, value in os.environ.items() if name not in KEYS}

    done = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", str(program)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.stderr) == (PRINTED[page][number], "")


@pytest.mark.parametrize("page", PRINTED)
def test_every_program_of_a_page_is_run(page: str) -> None:
    assert len(blocks(page)) == len(PRINTED[page])


@pytest.mark.parametrize("page", PRINTED)
def test_what_a_page_says_of_an_output_is_what_is_printed(page: str) -> None:
    for (_, after), printed in zip(blocks(page), PRINTED[page], strict=True):
        first = after.strip().split("\n\n")[0]
        said = re.findall(r"`([^`]+)`", first) if first.startswith("It prints") else []
        assert [text for text in said[: len(printed.splitlines())] if text not in printed] == []
