"""Import of a folder of session files: every session once, each file's outcome in a report."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.importing import ImportResult, import_session
from everfold.interchange.limits import DEFAULT_LIMITS, ImportLimits
from everfold.session.composition import Composition
from everfold.session.deciding import DecisionMeans
from everfold.session.ports import SessionStore

# `session.jsonl` is generation 0, `session.v3.jsonl.zstd` is generation 3 (R334, R345).
_NAME = re.compile(r"(?P<stem>.+?)(?:\.v(?P<generation>[0-9]{1,9}))?\.jsonl(?:\.zstd?)?")
_PACKED = re.compile(r".+\.jsonl\.(?:gz|bz2|xz|zip)")
_IS_LINK = "it is a symbolic link; it was not followed"
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class FileReport:
    """What became of one file; exactly one of the three is set.

    Attributes:
        superseded_by: the file of a newer generation that was taken, or refused, in its place.
    """

    path: Path
    result: ImportResult | None = None
    refusal: ImportRefusedError | None = None
    superseded_by: Path | None = None


@dataclass(frozen=True, slots=True)
class FolderReport:
    """The outcomes of all session files of a folder, in order of path."""

    files: tuple[FileReport, ...]

    @property
    def imported(self) -> tuple[FileReport, ...]:
        """The files whose session is stored now."""
        return tuple(each for each in self.files if each.result is not None)

    @property
    def refused(self) -> tuple[FileReport, ...]:
        """The files that nothing was taken from."""
        return tuple(each for each in self.files if each.refusal is not None)


@dataclass(frozen=True, slots=True)
class _Candidate:
    path: Path
    stem: str
    generation: int


def import_folder(
    folder: Path,
    store: SessionStore,
    composition: Composition,
    means: DecisionMeans,
    *,
    repair: bool = False,
    limits: ImportLimits = DEFAULT_LIMITS,
) -> FolderReport:
    """Import every session file below a folder, each in a transaction of its own.

    Of several generations of one session (`session.jsonl`, `session.v3.jsonl`, …) the highest is
    taken; one that is damaged is reported, an older one does not take its place. One bad file
    does not keep the others out. Symbolic links are reported, never followed.

    Raises:
        ImportRefusedError: the folder cannot be listed.
        StoreError: the database failed; what was reported as imported so far is stored.
    """
    reports: list[FileReport] = []
    found = sorted(_candidates(folder, reports), key=_session_key)
    for _key, group in groupby(found, key=_session_key):
        newest, *older = sorted(group, key=lambda each: (-each.generation, each.path))
        twins = [each for each in older if each.generation == newest.generation]
        if twins:
            reports += (_ambiguous(each, newest.generation) for each in (newest, *twins))
        else:
            reports.append(_imported(newest.path, store, composition, means, repair, limits))
        reports += (
            FileReport(each.path, superseded_by=newest.path) for each in older if each not in twins
        )
    return FolderReport(tuple(sorted(reports, key=lambda each: each.path)))


def _session_key(candidate: _Candidate) -> tuple[Path, str]:
    return candidate.path.parent, candidate.stem


def _candidates(root: Path, reports: list[FileReport]) -> Iterator[_Candidate]:
    """Yield the files that are named like sessions; folders that are not entered are reported."""

    def report(error: OSError) -> None:
        refusal = _file_refusal(f"{error.filename} cannot be listed: {error.strerror}")
        if Path(error.filename) == root:
            raise refusal from error
        reports.append(FileReport(Path(error.filename), refusal=refusal))

    for parent, folders, names in os.walk(root, onerror=report):
        reports += (
            FileReport(Path(parent, name), refusal=_file_refusal(_IS_LINK))
            for name in folders
            if Path(parent, name).is_symlink()
        )
        for name in names:
            match = _NAME.fullmatch(name)
            if _PACKED.fullmatch(name) is not None:
                refusal = _file_refusal("it is packed; unpack it first", "compression")
                reports.append(FileReport(Path(parent, name), refusal=refusal))
            elif match is not None:
                generation = int(match["generation"] or 0)
                yield _Candidate(Path(parent, name), match["stem"], generation)


def _file_refusal(reason: str, code: str = "file") -> ImportRefusedError:
    return ImportRefusedError(reason, line=1, code=code)


def _ambiguous(candidate: _Candidate, generation: int) -> FileReport:
    reason = f"there are two files of generation {generation}; import the right one by its name"
    return FileReport(candidate.path, refusal=_file_refusal(reason))


def _imported(
    path: Path,
    store: SessionStore,
    composition: Composition,
    means: DecisionMeans,
    repair: bool,
    limits: ImportLimits,
) -> FileReport:
    try:
        with open(_opened(path), "rb") as file:
            result = import_session(file, store, composition, means, repair=repair, limits=limits)
    except ImportRefusedError as error:
        return FileReport(path, refusal=error)
    return FileReport(path, result=result)


def _opened(path: Path) -> int:
    """Open a regular file, not through a link; a link put there meanwhile is not followed either."""
    try:
        if path.is_symlink():
            raise _file_refusal(_IS_LINK)
        handle = os.open(path, os.O_RDONLY | _NO_FOLLOW)
    except OSError as error:
        reason = f"it cannot be read: {error.strerror}"
        raise _file_refusal(reason) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _file_refusal("it is not a regular file")
    return handle
