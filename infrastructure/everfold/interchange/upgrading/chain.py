"""The steps one after another: whatever version a file has, version 3 comes out."""

from collections.abc import Iterator

from everfold.interchange.upgrading.checking import checked
from everfold.interchange.upgrading.from_0 import header_from_0, records_from_0
from everfold.interchange.upgrading.from_1 import header_from_1, records_from_1
from everfold.interchange.upgrading.from_2 import header_from_2, records_from_2
from everfold.interchange.upgrading.numbered import Numbered, Record


class Upgrade:
    """The way of one file to version 3.

    Attributes:
        header: the fields of its header line, as version 3 has them.

    Raises:
        ImportRefusedError: the header does not have the form of its version.
    """

    def __init__(self, version: int, header: Record) -> None:
        self._version = version
        self._inherited: int | None = None
        if version == 0:
            header = header_from_0(header)
        if version <= 1:
            header, self._inherited = header_from_1(header)
        self.header = header_from_2(header)

    def records(self, records: Iterator[Numbered]) -> Iterator[Numbered]:
        """Yield the records of version 3; memory does not grow with the log.

        Args:
            records: those of the file, in its order.

        Raises:
            ImportRefusedError: one cannot be upgraded; it names line, seq and code.
        """
        records = checked(records, self._version)
        if self._version == 0:
            records = records_from_0(records)
        if self._version <= 1:
            records = records_from_1(records, self._inherited, self.header.get("createdAt"))
        return records_from_2(records, self.header.get("id"))
