"""The lines of a session file, plain or Zstandard, read piece by piece under caps."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Protocol, runtime_checkable

import zstandard

from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.kinds import MAGIC_BYTES, fault_of
from everfold.interchange.limits import ImportLimits


@runtime_checkable
class Readable(Protocol):
    """An open binary file, as far as reading needs it."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""
        ...


Source = Path | Readable | Iterable[bytes]
"""A file, an open binary file, or the bytes of one in pieces cut anywhere."""

PIECE_BYTES = 64 * 1024
# Four bytes of Zstandard can stand for 128 KiB; so few at once keep one step below 16 MiB.
_COMPRESSED_PIECE_BYTES = 512
_MAX_WINDOW_BYTES = 2**27
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FRAME_MAGIC = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True, slots=True)
class Line:
    """One line, without its end.

    Attributes:
        number: from 1.
        is_torn: whether the file ends before the line does (R340).
    """

    number: int
    content: bytes
    is_torn: bool = False


class LineReader:
    """One pass over the lines of a file.

    Attributes:
        number: that of the line being read, from 1.
        is_frame_torn: whether the last compressed frame was cut short, known after the pass.
    """

    def __init__(self, pieces: Iterable[bytes], limits: ImportLimits) -> None:
        self._limits = limits
        self._total = 0
        self._pieces = self._unpacked(iter(pieces))
        self.number = 1
        self.is_frame_torn = False

    def __iter__(self) -> Iterator[Line]:
        pending: list[bytes] = []
        size = 0
        for piece in self._pieces:
            start = 0
            while (end := piece.find(b"\n", start)) >= 0:
                self._check_length(size + end - start)
                yield self._line(b"".join((*pending, piece[start:end])))
                self.number += 1
                pending, size, start = [], 0, end + 1
            pending.append(piece[start:])
            size += len(piece) - start
            self._check_length(size)
        if size:
            yield Line(self.number, b"".join(pending), is_torn=True)

    def _line(self, content: bytes) -> Line:
        if self.number == 1:
            content = content.removeprefix(_BYTE_ORDER_MARK)
        return Line(self.number, content.removesuffix(b"\r"))

    def _check_length(self, size: int) -> None:
        if size > self._limits.max_line_bytes:
            raise self._refusal(
                f"the line is longer than {self._limits.max_line_bytes} bytes", "too-large"
            )

    def _unpacked(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        head, pieces = _with_head(pieces)
        if head.startswith(_FRAME_MAGIC):
            head, pieces = _with_head(self._decompressed(pieces))
        fault = fault_of(head)
        if fault is not None:
            raise self._refusal(*fault)
        for piece in pieces:
            self._total += len(piece)
            if self._total > self._limits.max_total_bytes:
                raise self._refusal(
                    f"the file holds more than {self._limits.max_total_bytes} bytes", "too-large"
                )
            yield piece

    def _decompressed(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        frames = _Frames()
        for piece in pieces:
            for start in range(0, len(piece), _COMPRESSED_PIECE_BYTES):
                rest = piece[start : start + _COMPRESSED_PIECE_BYTES]
                while rest:
                    try:
                        content, rest = frames.feed(rest)
                    except zstandard.ZstdError as error:
                        raise self._refusal(
                            f"cannot be decompressed: {error}", "compression"
                        ) from error
                    yield content
        self.is_frame_torn = frames.is_open

    def _refusal(self, reason: str, code: str) -> ImportRefusedError:
        seq = self.number - 2 if self.number > 1 else None
        return ImportRefusedError(reason, line=self.number, code=code, seq=seq)


def _with_head(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first bytes, enough to tell a file's kind, and all pieces."""
    head = b""
    while len(head) < MAGIC_BYTES and (piece := next(pieces, None)) is not None:
        head += piece
    return head, chain((head,), pieces)


class _Frames:
    """Independent Zstandard frames, one after another."""

    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
        self._frame: zstandard.ZstdDecompressionObj | None = None

    @property
    def is_open(self) -> bool:
        """Whether a frame was begun and not ended."""
        return self._frame is not None

    def feed(self, compressed: bytes) -> tuple[bytes, bytes]:
        """Return what these bytes hold of the current frame, and the bytes of the next one."""
        if self._frame is None:
            self._frame = self._decompressor.decompressobj()
        content = self._frame.decompress(compressed)
        if not self._frame.eof:
            return content, b""
        rest, self._frame = self._frame.unused_data, None
        return content, rest


def pieces_of(file: Readable) -> Iterator[bytes]:
    """Yield the rest of an open binary file in pieces."""
    while piece := file.read(PIECE_BYTES):
        yield piece
