"""What messages advise: the library names Python, the command line names commands."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CLI = ROOT / "infrastructure/everfold/cli"
SHELL = re.compile(r"`everfold |(?:^|[\s`])--[a-z]")
PYTHON = re.compile(r"`[\w.]+\([^`]*\)`|\b\w+=(?:True|False|None)\b")


def sources() -> Iterator[Path]:
    """Yield every module of the package."""
    for root in ("domain", "projections", "infrastructure"):
        yield from (ROOT / root).rglob("*.py")


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    documents = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if isinstance(node, ast.Constant) and is_text and id(node) not in documents:
            yield str(node.value)


def advising(pattern: re.Pattern[str], *, in_cli: bool) -> list[str]:
    """Return the texts in which a pattern is found."""
    return [
        f"{path.relative_to(ROOT)}: {text}"
        for path in sorted(sources())
        if path.is_relative_to(CLI) == in_cli
        for text in texts(path)
        if pattern.search(text)
    ]


def test_no_message_of_the_library_advises_a_command() -> None:
    assert advising(SHELL, in_cli=False) == []


def test_no_message_of_the_command_line_advises_python() -> None:
    assert advising(PYTHON, in_cli=True) == []


@pytest.mark.parametrize(
    "text", ["run `everfold resume x`", "add --resume", "`--profile scripted` answers"]
)
def test_advice_for_a_shell_is_recognised(text: str) -> None:
    assert SHELL.search(text)


@pytest.mark.parametrize("text", ["`sessions.resume(id)` closes it", "open it with create=True"])
def test_advice_for_python_is_recognised(text: str) -> None:
    assert PYTHON.search(text)
