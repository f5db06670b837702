"""Opening what a path names, without ever waiting for somebody to write it."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.lines import PIECE_BYTES, pieces_of

_NO_WAIT = getattr(os, "O_NONBLOCK", 0)


@contextmanager
def opened(path: Path) -> Iterator[Iterator[bytes]]:
    """Yield the pieces of a file, or of a pipe that somebody writes.

    Raises:
        ImportRefusedError: it cannot be read, is neither of these, or a pipe that nobody writes.
    """
    try:
        file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 - closed below
    except OSError as error:
        raise _refusal(f"{path} cannot be read: {error.strerror}") from error
    with file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISREG(mode):
            yield pieces_of(file)
        elif stat.S_ISFIFO(mode):
            head = _head_of_pipe(path, file.fileno())
            yield chain((head,), pieces_of(file))
        else:
            raise _refusal(f"{path} is no regular file and no pipe")


def _without_waiting(path: str, flags: int) -> int:
    # Opening a pipe would wait for a writer, who may never come.
    return os.open(path, flags | _NO_WAIT)


def _head_of_pipe(path: Path, descriptor: int) -> bytes:
    """Return what a pipe holds already; from now on reading waits for its writer."""
    try:
        head = os.read(descriptor, PIECE_BYTES)
    except BlockingIOError:
        # Somebody has it open and has written nothing yet.
        head = b""
    else:
        if not head:
            raise _refusal(f"{path} is a pipe that nobody writes to")
    os.set_blocking(descriptor, True)
    return head


def _refusal(reason: str) -> ImportRefusedError:
    return ImportRefusedError(reason, line=1, code="file")
