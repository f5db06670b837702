"""Stores and files that the command line is asked for by mistake, or by a name that is not Unicode."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run

MEMORY = ("sqlite://", "sqlite:///", "sqlite:///:memory:")


@pytest.mark.parametrize("url", MEMORY)
def test_nothing_is_imported_into_a_store_in_memory(
    run: Run, quay_file: str, tmp_path: Path, url: str
) -> None:
    path = tmp_path / "quay.jsonl"
    run("export", "quay", "--store", quay_file, "-o", str(path))

    outcome = run("import", str(path), "--store", url)

    assert (outcome.status, outcome.out) == (1, "")
    assert "a store in memory is gone when the command ends" in outcome.err


@pytest.mark.parametrize("url", MEMORY)
def test_a_store_in_memory_is_not_called_empty(run: Run, url: str) -> None:
    outcome = run("list", "--store", url)

    assert (outcome.status, outcome.out) == (1, "")
    assert "names no file" in outcome.err


def test_names_that_are_not_unicode_are_names(run: Run, quay_file: str, tmp_path: Path) -> None:
    session, store = (os.fsdecode(bytes(tmp_path) + name) for name in (b"/\xff.jsonl", b"/\xff.db"))
    run("export", "quay", "--store", quay_file, "-o", session)

    outcome = run("import", session, "--store", store, "--json")

    assert outcome.status == 0
    assert json.loads(outcome.out)["files"][0]["path"] == session
    assert run("list", "--store", store).out.splitlines()[1].startswith("quay ")


def test_a_nul_in_a_store_url_is_refused(run: Run) -> None:
    outcome = run("list", "--store", "sqlite:///a%00.db")

    assert outcome.status == 1
    assert "no path holds a NUL" in outcome.err
