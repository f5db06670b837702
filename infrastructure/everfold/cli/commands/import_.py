"""`everfold import`: sessions from files, each whole or not at all."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import click

from everfold.attachments.references import Holds
from everfold.cli import output
from everfold.cli.describe import plural
from everfold.cli.edge import DONE, PARTLY, REFUSED
from everfold.cli.holding import Holding, holding
from everfold.cli.options import (
    Run,
    check_lasting,
    json_option,
    pass_run,
    store_option,
    writing_sessions,
)
from everfold.cli.visible import one_line, visible
from everfold.host.sessions import Sessions
from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.folders import FileReport, import_folder
from everfold.interchange.importing import ImportResult, import_session
from everfold.session.frozen import Json

_MOST_NAMED = 3
_SHOWN_ID = len("sha256:") + 12


@click.command("import")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH..."
)
@store_option
@json_option
@click.option("--repair", is_flag=True, help="Replace text that is not valid Unicode, and list it.")
@click.option("--id", "session_id", metavar="NEW", help="Id to store it under; for one file.")
@pass_run
def command(
    run: Run,
    paths: tuple[Path, ...],
    store: str | None,
    as_json: bool,
    repair: bool,
    session_id: str | None,
) -> int:
    """Store the sessions of files and folders; `-` is standard input, and a pipe is a file.

    Files are JSONL, plain or compressed with Zstandard: `gunzip -c s.jsonl.gz | everfold import -`
    for others. Every file is checked completely before anything of it is stored. Attachments are in
    no file: those that are not there are named. Exit code 0 if all were imported, 3 if some, 1 if none.
    """
    if session_id is not None and (len(paths) != 1 or any(path.is_dir() for path in paths)):
        raise click.UsageError("--id goes with exactly one file")
    _check_paths(paths)
    url = run.url(store)
    check_lasting(url)
    reports: list[FileReport] = []
    with holding(url) as held, writing_sessions(url, create=True) as sessions:
        for report in _reports(sessions, paths, repair, session_id):
            reports.append(report)
            if not as_json:
                _say(report)
                _warn(report, held)
        if as_json:
            output.document({"files": [_record(report, held) for report in reports]})
    return _status(reports, paths)


def _check_paths(paths: Iterable[Path]) -> None:
    for path in paths:
        if str(path) != "-":
            if not path.exists():
                raise click.ClickException(f"there is no file {str(path)!r}; nothing was imported")
        elif sys.stdin is None or sys.stdin.isatty():
            raise click.UsageError("name a file, or pipe one in: nothing comes from `-`")


def _reports(
    sessions: Sessions, paths: tuple[Path, ...], repair: bool, session_id: str | None
) -> Iterator[FileReport]:
    with output.progress("importing", len(paths)) as advance:
        for path in paths:
            if path.is_dir():
                yield from _folder(sessions, path, repair)
            else:
                yield _file(sessions, path, repair, session_id)
            advance()


def _folder(sessions: Sessions, path: Path, repair: bool) -> Iterable[FileReport]:
    parts = (sessions.store, sessions.composition, sessions.means)
    try:
        return import_folder(path, *parts, repair=repair).files
    except ImportRefusedError as error:
        return (FileReport(path, refusal=error),)


def _file(sessions: Sessions, path: Path, repair: bool, session_id: str | None) -> FileReport:
    source = sys.stdin.buffer if str(path) == "-" else path
    parts = (sessions.store, sessions.composition, sessions.means)
    try:
        result = import_session(source, *parts, session_id=session_id, repair=repair)
    except ImportRefusedError as error:
        return FileReport(path, refusal=error)
    except OSError as error:
        reason = f"it cannot be read: {error.strerror}"
        return FileReport(path, refusal=ImportRefusedError(reason, line=1, code="file"))
    return FileReport(path, result=result)


def _status(reports: list[FileReport], paths: tuple[Path, ...]) -> int:
    imported = sum(report.result is not None for report in reports)
    refused = sum(report.refusal is not None for report in reports)
    if not reports:
        raise click.ClickException(f"there is no session file (*.jsonl) in {str(paths[0])!r}")
    if refused:
        return PARTLY if imported else REFUSED
    return DONE


def _say(report: FileReport) -> None:
    path = one_line(str(report.path))
    if report.result is not None:
        result = report.result
        output.say(f"imported  {path}: {one_line(result.session_id)}, {_count(result)}")
        for note in _notes(result):
            output.say(f"          {one_line(note)}")
    elif report.refusal is not None:
        output.say(f"refused   {path}: {one_line(str(report.refusal))}")
    else:
        output.say(f"skipped   {path}: {one_line(str(report.superseded_by))} is newer")


def _missing(result: ImportResult, held: Holds) -> list[str]:
    return [id_ for id_ in result.attachments if not held.has(id_)]


def _warn(report: FileReport, held: Holding) -> None:
    """Say on standard error which attachments of an imported session are not there."""
    missing = [] if report.result is None else _missing(report.result, held)
    if not missing or report.result is None:
        return
    shown = ", ".join(id_[:_SHOWN_ID] for id_ in missing[:_MOST_NAMED])
    more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    count = plural(len(missing), "attachment")
    text = f"session {report.result.session_id!r} refers to {count} that it was stored without: "
    click.echo(visible(f"everfold: {text}{shown}{more}; {held.told(len(missing))}"), err=True)


def _count(result: ImportResult) -> str:
    return plural(result.event_count, "event")


def _notes(result: ImportResult) -> Iterator[str]:
    yield from (f"warning: {warning}" for warning in result.warnings)
    for each in result.replaced:
        yield f"replaced: line {each.line}, {each.path}, {plural(each.count, 'character')}"


def _record(report: FileReport, held: Holding) -> dict[str, Json]:
    record: dict[str, Json] = {"path": str(report.path)}
    if report.result is not None:
        result = report.result
        record |= {"session": result.session_id, "events": result.event_count}
        record |= {
            "warnings": list(result.warnings),
            "replaced": list(map(asdict, result.replaced)),
        }
        missing = _missing(result, held)
        if missing:
            record["missingAttachments"] = {"place": held.place, "ids": missing}
    elif report.refusal is not None:
        error = report.refusal
        record["error"] = {"code": error.code, "message": str(error), "line": error.line}
        if error.seq is not None:
            record["error"]["seq"] = error.seq
    else:
        record["supersededBy"] = str(report.superseded_by)
    return record
