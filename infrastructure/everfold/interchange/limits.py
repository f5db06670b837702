"""How much of a file is read before it is refused."""

from dataclasses import dataclass

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ImportLimits:
    """Caps that hold before memory is used; sizes are after decompression.

    Attributes:
        max_line_bytes: cap of one line. Escapes make a line longer than what is stored of it, so
            this is above the cap of one event's stored bytes.
        max_total_bytes: cap of the whole file.
    """

    max_line_bytes: int = 64 * _MIB
    max_total_bytes: int = 1024 * _MIB


DEFAULT_LIMITS = ImportLimits()
