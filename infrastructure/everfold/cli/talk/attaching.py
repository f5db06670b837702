"""Images and files that go with a message: named by their paths, stored before the message is."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import click

from everfold.agent.content import Part
from everfold.attachments.admission import Source
from everfold.attachments.errors import AdmissionError
from everfold.cli.describe import plural
from everfold.profiles.opening import OpenProfile

F = TypeVar("F", bound=Callable[..., object])
Kind = Literal["image", "file"]

MAX_BYTES = 256 * 1024 * 1024
"""Beyond this a file is not even read; admission has tighter limits of its own."""

_NO_IMAGE = "undecodable"


def attachment_options(message: str) -> Callable[[F], F]:
    """Return what gives a command the options that attach something to a message of its."""

    def give(command: F) -> F:
        for kind, shown in (("file", "A file, kept as it is,"), ("image", "An image")):
            command = click.option(
                f"--{kind}",
                f"{kind}s",
                multiple=True,
                metavar="PATH",
                type=click.Path(path_type=Path),
                help=f"{shown} that goes with the {message}; repeatable.",
            )(command)
        return command

    return give


def attached(
    host: OpenProfile, images: Sequence[Path], files: Sequence[Path], as_file: str = "--file PATH"
) -> list[Part]:
    """Store images and files, all or none, and return the blocks that refer to them.

    Args:
        as_file: how the user says that something is to be kept as a file.

    Raises:
        AdmissionError: names everything at fault; nothing was stored.
        click.ClickException: one cannot be read.
    """
    sources = [*(_source(path, "image") for path in images)]
    sources += [_source(path, "file") for path in files]
    if not sources:
        return []
    try:
        return [*host.attach(sources)]
    except AdmissionError as error:
        if any(refusal.code == _NO_IMAGE for refusal in error.refusals):
            error.add_note(f"here: {as_file}")
        raise


def attachments_text(parts: Sequence[Part]) -> str:
    """Return what goes with the next message, as `1 image and 2 files go`."""
    kinds = [part["type"] for part in parts if isinstance(part, dict)]
    counts = [(kinds.count(kind), kind) for kind in ("image", "file")]
    named = " and ".join(plural(count, kind) for count, kind in counts if count)
    return f"{named} {'goes' if len(kinds) == 1 else 'go'}"


def _source(path: Path, kind: Kind) -> Source:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise click.ClickException(f"the {kind} {str(path)!r} is over {MAX_BYTES} bytes")
        return Source(path.read_bytes(), path.name, None, kind)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise click.ClickException(f"the {kind} {str(path)!r} cannot be read: {reason}") from error
