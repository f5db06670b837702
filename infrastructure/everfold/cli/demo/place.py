"""Where a demonstration takes place: a store, the folder of its images, and nothing left of a failure."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from everfold.attachments.admission import Source
from everfold.cli.demo.errors import DemoError
from everfold.cli.demo.pictures import drawn_pictures
from everfold.cli.location import file_of, store_url
from everfold.store.file_urls import file_url


@dataclass(frozen=True, slots=True)
class Place:
    """The SQLite file and the folder of images beside it."""

    database: Path
    attachments: Path

    @property
    def url(self) -> str:
        """The store's URL."""
        return file_url(self.database)


@contextmanager
def place(named: str | None) -> Iterator[Place]:
    """Yield a place; if the block fails, the folders that were made for it are removed.

    Args:
        named: an SQLite file or its URL; a fresh directory is made if None.
    """
    made: Path | None
    if named is None:
        fresh = Path(tempfile.mkdtemp(prefix="everfold-demo-"))
        chosen, made = Place(fresh / "sessions.sqlite", fresh / "attachments"), fresh
    else:
        database = file_of(store_url(named))
        if database is None:
            raise click.UsageError("the demo keeps its store in an SQLite file; name one, or none")
        chosen = Place(database, database.with_name(database.stem + ".attachments"))
        made = _first_missing(chosen.attachments)
    try:
        _make_private(chosen.database.parent)
        yield chosen
    except BaseException:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
        raise


def sources_of(paths: Sequence[Path]) -> list[Source]:
    """Return the user's images, or four that are drawn, as they are; nothing is checked yet.

    Raises:
        DemoError: a file cannot be read.
    """
    if not paths:
        return [Source(data, name, None, "image") for name, data in drawn_pictures()]
    return [Source(_read(path), path.name, None, "image") for path in paths]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DemoError(
            f"the image {os.fspath(path)!r} cannot be read: {error.strerror}; nothing was stored"
        ) from error


def _make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner alone."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        for each in reversed(missing):
            each.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise DemoError(f"{folder} cannot be made: {error.strerror}; nothing was stored") from error


def _first_missing(path: Path) -> Path | None:
    """Return the topmost part of a path that does not exist, None if all of it does."""
    missing = None
    while not path.exists():
        missing, path = path, path.parent
    return missing
