"""A session file as a header and event records, each with the line it stands in."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.limits import DEFAULT_LIMITS, ImportLimits
from everfold.interchange.lines import Line, LineReader
from everfold.interchange.ranges import decode_ranges
from everfold.interchange.strict_json import parse
from everfold.interchange.upgrading.chain import Upgrade
from everfold.interchange.upgrading.numbered import Numbered
from everfold.session.errors import SeedCutError, SessionError, SessionHeaderError
from everfold.session.frozen import Json
from everfold.session.lossless import natural
from everfold.session.session_header import FORMAT_VERSION
from everfold.session.state import END_SEED, is_inherited_marker
from everfold.session.vocabulary import MESSAGE_TYPES

LINE_TYPE = "session"
"""The `type` of a header line; a header in memory has none."""

_NO_FILE = "this is no session file"
_FIRST_WITH_RANGES = 2


@dataclass(frozen=True, slots=True)
class Replaced:
    """Invalid text of a file that was replaced by U+FFFD because a repair was asked for."""

    line: int
    path: str
    count: int


class LogReader:
    """One pass over a session file: `header()` first, then `records()`.

    Records have the wire's field names and decoded sources; what they say is judged by the
    session's doors, which pull them one by one, so `line` names the one being judged.

    Files of format versions 0 to 2 are brought to version 3 on the way (group Z).

    Attributes:
        line: number of the line last given out, from 1.
        given: how many records were given out and taken.
        warnings: what was tolerated, complete after the pass.
        replaced: what a repair put in.
    """

    def __init__(
        self,
        pieces: Iterable[bytes],
        *,
        repair: bool = False,
        limits: ImportLimits = DEFAULT_LIMITS,
    ) -> None:
        self._source = LineReader(pieces, limits)
        self._lines = iter(self._source)
        self._repair = repair
        self._header: dict[str, Json] = {}
        self._version = FORMAT_VERSION
        self._upgrade: Upgrade | None = None
        self._seq: int | None = None
        self.line = 1
        self.given = 0
        self.warnings: list[str] = []
        self.replaced: list[Replaced] = []

    def header(self) -> dict[str, Json]:
        """Return the fields of the header line as a session's header has them.

        Raises:
            ImportRefusedError: not a session file, or one of a newer format version.
        """
        first = next(self._lines, None)
        if first is None:
            raise _header_refusal("the file is empty")
        is_object = first.content.startswith(b"{")
        if first.is_torn:
            is_what = "the header line is cut short" if is_object else _NO_FILE
            raise _header_refusal(is_what)
        try:
            fields = self._value(first)
        except ImportRefusedError as error:
            if is_object:
                raise
            raise _header_refusal(f"{_NO_FILE}: {error.reason}", error.code) from error
        if not isinstance(fields, dict) or fields.get("type") != LINE_TYPE:
            raise _header_refusal(
                f"{_NO_FILE}: the first line is not an object of type {LINE_TYPE!r}"
            )
        self._version = _version_of(fields)
        self._header = {name: value for name, value in fields.items() if name != "type"}
        if self._version < FORMAT_VERSION:
            self._upgrade = Upgrade(self._version, self._header)
            self._header = self._upgrade.header
            self.warnings.append(
                f"the file has format version {self._version}; it was brought to {FORMAT_VERSION}"
            )
        return dict(self._header)

    def records(self) -> Iterator[dict[str, Json]]:
        """Yield the event records in file order.

        Raises:
            ImportRefusedError: a line is not JSON that can be kept, the file is over a cap, an old
                record cannot be upgraded, or header and end-of-seed markers do not go together
                (R339).
        """
        has_marker = False
        read = self._read()
        for each in read if self._upgrade is None else self._upgrade.records(read):
            self.line, self._seq, record = each.line, each.seq, each.record
            yield record
            self.given += 1
            if record.get("type") == END_SEED and is_inherited_marker(record.get("data")):
                has_marker = True
                self._check_marker()
        if self._source.is_frame_torn:
            self.warnings.append("the last compressed frame is cut short: a torn write was dropped")
        if self._header.get("isSeeded") is True and not has_marker:
            reason = "the header says isSeeded, but no end-seed marker says inherited"
            raise _header_refusal(reason, SeedCutError.code)

    def refusal(self, cause: SessionError) -> ImportRefusedError:
        """Return the refusal of the current line for what a door said about it."""
        return ImportRefusedError.of(cause, line=self.line, seq=self._seq)

    def _read(self) -> Iterator[Numbered]:
        for line in self._lines:
            if line.is_torn:
                self._note_torn(line)
                return
            yield Numbered(line.number, line.number - 2, self._record(line))

    def _record(self, line: Line) -> dict[str, Json]:
        seq = line.number - 2
        record = self._value(line)
        if not isinstance(record, dict):
            reason = f"an event record is an object, not {_kind(record)}"
            raise ImportRefusedError(reason, line=line.number, code="envelope", seq=seq)
        sources = record.get("sourceEventSeqs")
        type_ = record.get("type")
        is_message = isinstance(type_, str) and type_ in MESSAGE_TYPES
        # Before version 2 nothing is range-coded, and packed lines put line and seq apart.
        if isinstance(sources, list) and is_message and self._version >= _FIRST_WITH_RANGES:
            try:
                record["sourceEventSeqs"] = decode_ranges(sources, seq)
            except SessionError as error:
                raise ImportRefusedError.of(error, line=line.number) from error
        return record

    def _value(self, line: Line) -> Json:
        try:
            value, repairs = parse(line.content, repair=self._repair)
        except SessionError as error:
            raise ImportRefusedError.of(error, line=line.number) from error
        self.replaced += [Replaced(line.number, each.path, each.count) for each in repairs]
        return value

    def _check_marker(self) -> None:
        if self._header.get("isSeeded") is not True:
            raise self.refusal(
                SeedCutError("an end-seed marker says inherited, but the header is not isSeeded")
            )

    def _note_torn(self, line: Line) -> None:
        seq = f" (seq {line.number - 2})" if self._version >= _FIRST_WITH_RANGES else ""
        self.warnings.append(
            f"line {line.number}{seq} has no newline at its end: a torn write of "
            f"{len(line.content)} bytes was dropped"
        )


def _header_refusal(reason: str, code: str = SessionHeaderError.code) -> ImportRefusedError:
    return ImportRefusedError(reason, line=1, code=code)


def _version_of(fields: dict[str, Json]) -> int:
    version = natural(fields.get("version"))
    if version is None:
        raise _header_refusal(f"version {fields.get('version')!r} is not a whole number")
    if version > FORMAT_VERSION:
        reason = f"is newer than {FORMAT_VERSION}, the newest that is read here; update everfold"
        raise _header_refusal(f"format version {version} {reason}", "format-version")
    return version


def _kind(value: Json) -> str:
    return "null" if value is None else type(value).__name__
