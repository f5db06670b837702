"""Import of one session file: read, judge it whole, store it in one transaction."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from everfold.attachments.ids import AttachmentId
from everfold.attachments.references import referred
from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.limits import DEFAULT_LIMITS, ImportLimits
from everfold.interchange.lines import Readable, Source, pieces_of
from everfold.interchange.log_reader import LogReader, Replaced
from everfold.interchange.opening import opened
from everfold.session.composition import Composition
from everfold.session.deciding import DecisionMeans
from everfold.session.doors import Adopted, restore
from everfold.session.errors import SeedCutError, SessionError, SessionExistsError
from everfold.session.events import Recorded
from everfold.session.frozen import Json
from everfold.session.ids import HEADER_VERSION, SessionId
from everfold.session.ids import session_id as checked_id
from everfold.session.ports import SessionStore
from everfold.session.session import Session


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import stored.

    Attributes:
        event_count: events of the log, the header not counted.
        warnings: what was tolerated, such as a torn last line.
        replaced: invalid text that a repair replaced.
        attachments: those that the session refers to, whose bytes no file holds.
    """

    session_id: SessionId
    event_count: int
    warnings: tuple[str, ...] = ()
    replaced: tuple[Replaced, ...] = ()
    attachments: tuple[AttachmentId, ...] = ()


@dataclass(frozen=True, slots=True)
class FileView:
    """A file as far as it is whole.

    Attributes:
        session: folded from the events before the defect; it is in no store.
        refusal: the defect for which an import would refuse the file; None if it would take it.
    """

    session: Session
    refusal: ImportRefusedError | None


def import_session(
    source: Source,
    store: SessionStore,
    composition: Composition,
    means: DecisionMeans,
    *,
    session_id: str | None = None,
    repair: bool = False,
    limits: ImportLimits = DEFAULT_LIMITS,
) -> ImportResult:
    """Store the session of a file, plain or Zstandard; all of it or nothing.

    The stored log is exactly the file's: no marker is added. One of format versions 0 to 2 is
    brought to version 3 on the way, with a warning; the file stays as it is (R351). A last line
    without newline is dropped with a warning (R340).

    Args:
        source: a path, an open binary file, or pieces of bytes.
        session_id: the id to store it under; the file's if None.
        repair: replace text that is not valid Unicode by U+FFFD instead of refusing it.

    Raises:
        ImportRefusedError: the file breaks a rule, or its id is taken; it names line and code.
        StoreError: the database could not take it.
    """
    with _pieces(source) as pieces:
        reader = LogReader(pieces, repair=repair, limits=limits)
        header = _header(reader, session_id)
        if store.version(header["id"]):
            raise reader.refusal(SessionExistsError(header["id"]))
        adopted = _adopt(reader, header, composition, means)
    rows = _rows_of_the_file(adopted)
    try:
        store.append(rows)
    except SessionExistsError as error:
        raise ImportRefusedError.of(error, line=1) from error
    return ImportResult(
        adopted.session.id,
        len(rows) - 1,
        tuple(reader.warnings),
        tuple(reader.replaced),
        tuple(referred(rows)),
    )


def view_file(
    source: Path,
    composition: Composition,
    means: DecisionMeans,
    *,
    repair: bool = False,
    limits: ImportLimits = DEFAULT_LIMITS,
) -> FileView:
    """Return what a file shows up to its first defect, without storing anything.

    Raises:
        ImportRefusedError: the header itself is at fault, so that there is nothing to show.
    """

    def adopted(count: int | None) -> tuple[LogReader, Adopted | ImportRefusedError]:
        with _pieces(source) as pieces:
            reader = LogReader(pieces, repair=repair, limits=limits)
            header = _header(reader, None)
            try:
                return reader, _adopt(reader, header, composition, means, count)
            except ImportRefusedError as error:
                return reader, error

    reader, result = adopted(None)
    if not isinstance(result, ImportRefusedError):
        return FileView(_folded(result, composition, means), None)
    refusal = result
    if refusal.line > 1 or refusal.code == SeedCutError.code:
        _, result = adopted(reader.given)
    if isinstance(result, ImportRefusedError):
        raise result
    return FileView(_folded(result, composition, means), refusal)


def _folded(adopted: Adopted, composition: Composition, means: DecisionMeans) -> Session:
    session = Session(adopted.session.header, composition, means)
    session.catch_up(_rows_of_the_file(adopted)[HEADER_VERSION:])
    return session


def _header(reader: LogReader, session_id: str | None) -> dict[str, Json]:
    header = reader.header()
    if session_id is not None:
        header["id"] = checked_id(session_id)
    else:
        _check_id(reader, header)
    if "delegationDepth" not in header:
        reader.warnings.append("line 1 has no delegationDepth; 0 was put in")
        header["delegationDepth"] = 0
    return header


def _check_id(reader: LogReader, header: Mapping[str, Json]) -> None:
    try:
        checked_id(header.get("id"))
    except SessionError as error:
        raise reader.refusal(error) from error


def _adopt(
    reader: LogReader,
    header: Mapping[str, Json],
    composition: Composition,
    means: DecisionMeans,
    event_count: int | None = None,
) -> Adopted:
    records = islice(reader.records(), event_count)
    try:
        return restore(header, records, composition, means)
    except ImportRefusedError:
        raise
    except SessionError as error:
        raise reader.refusal(error) from error


def _rows_of_the_file(adopted: Adopted) -> tuple[Recorded, ...]:
    # The door marks where a live session begins (R160); a file at rest has no such place.
    return adopted.rows[: len(adopted.rows) - len(adopted.added)]


@contextmanager
def _pieces(source: Source) -> Iterator[Iterator[bytes]]:
    if isinstance(source, Path):
        with opened(source) as pieces:
            yield pieces
    elif isinstance(source, Readable):
        yield pieces_of(source)
    else:
        yield iter(source)
