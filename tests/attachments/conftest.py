"""Fixtures of the tests about attachments."""

from pathlib import Path

import pytest

from everfold.attachments.filesystem import FileAttachments


@pytest.fixture
def files(tmp_path: Path) -> FileAttachments:
    """An empty store in a folder."""
    return FileAttachments(tmp_path / "attachments")
