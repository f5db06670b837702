"""From version 0 to 1: types get other names (R347)."""

from collections.abc import Iterator

from everfold.interchange.upgrading.checking import RENAMED
from everfold.interchange.upgrading.numbered import Numbered, Record


def header_from_0(header: Record) -> Record:
    """Return the header of version 1."""
    return {**header, "version": 1}


def records_from_0(records: Iterator[Numbered]) -> Iterator[Numbered]:
    """Yield the records of version 1."""
    for each in records:
        yield each.changed(type=RENAMED[each.type]) if each.type in RENAMED else each
