"""The contract of attachment stores on both that everfold ships."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.postgres import PostgresAttachments
from everfold.attachments.testing import AttachmentsOpener, AttachmentStoreContract, Damage
from tests.postgres import connect


class TestFiles(AttachmentStoreContract):
    """A folder."""

    @pytest.fixture
    def open_attachments(self, tmp_path: Path) -> AttachmentsOpener:
        """Open the test's folder."""
        return lambda: FileAttachments(tmp_path / "attachments")

    @pytest.fixture
    def damage(self, tmp_path: Path) -> Damage:
        """Change the first byte of a file."""

        def act(id_: str) -> None:
            path = FileAttachments(tmp_path / "attachments").path(id_)
            path.write_bytes(b"\xff" + path.read_bytes()[1:])

        return act


class TestPostgres(AttachmentStoreContract):
    """A schema on a PostgreSQL server."""

    @pytest.fixture
    def open_attachments(self, postgres_url: str) -> Iterator[AttachmentsOpener]:
        """Open the test's schema."""
        with ExitStack() as opened:
            yield lambda: opened.enter_context(PostgresAttachments(postgres_url))

    @pytest.fixture
    def damage(self, postgres_url: str) -> Damage:
        """Change the first byte of a row."""

        def act(id_: str) -> None:
            with connect(postgres_url) as connection:
                connection.execute(
                    "UPDATE attachment_objects SET data = set_byte(data, 0, 255) WHERE digest = %b",
                    (bytes.fromhex(id_.removeprefix("sha256:")),),
                )

        return act
