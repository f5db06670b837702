"""`everfold audit`: is what is stored whole, and does every view of it agree?"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import click

from everfold.audit.auditing import AuditReport, Difference, MissingImage, ViewCheck, audit
from everfold.audit.walking import Finding, Step
from everfold.cli import output
from everfold.cli.describe import plural
from everfold.cli.edge import DONE, PARTLY, REFUSED
from everfold.cli.holding import Holding, holding
from everfold.cli.options import Run, json_option, pass_run, reading_sessions, store_option
from everfold.cli.reading import check_session
from everfold.cli.visible import one_line
from everfold.host.sessions import Sessions
from everfold.session.frozen import Json

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Audited:
    """One audited session.

    Attributes:
        open_since: the seq of the start of the turn that is open at the end; None if none is.
    """

    report: AuditReport
    open_since: int | None


@click.command("audit")
@click.argument("session", required=False)
@store_option
@json_option
@click.option("--all", "is_all", is_flag=True, help="Audit every session of the store.")
@click.option(
    "--steps", is_flag=True, help="Print what every event did, not only the notable ones."
)
@pass_run
def command(
    run: Run, session: str | None, store: str | None, as_json: bool, is_all: bool, steps: bool
) -> int:
    """Fold the stored events of SESSION anew, one by one, and compare with every other view.

    Each row is decoded, encoded again and judged by the rules of its type. Exit code 1 if something
    is wrong; with --all 3 if some sessions are sound and some are not. Images that models are shown
    and whose bytes are not there are noted; the log is sound without them.
    """
    if is_all == (session is not None):
        raise click.UsageError("name one session, or say --all")
    url = run.url(store)
    with reading_sessions(url) as sessions, holding(url) as held:
        if session is None:
            return _audit_all(sessions, held, as_json=as_json)
        check_session(sessions.store, session)
        return _audit_one(sessions, held, session, as_json=as_json, all_steps=steps)


def _audit_one(
    sessions: Sessions, held: Holding, session_id: str, *, as_json: bool, all_steps: bool
) -> int:
    taken: list[Step] = []

    def keep(step: Step) -> None:
        if all_steps:
            taken.append(step)

    def say(step: Step) -> None:
        if all_steps or step.effect in ("hid", "changed"):
            output.say(step_text(step))

    audited = _audited(sessions, held, session_id, keep if as_json else say)
    if as_json:
        record = report_record(audited)
        output.document(
            {**record, "steps": list(map(_step_record, taken))} if all_steps else record
        )
    else:
        _say_report(audited, held)
    return DONE if audited.report.is_sound else REFUSED


def _audited(
    sessions: Sessions, held: Holding, session_id: str, on_step: Callable[[Step], None]
) -> Audited:
    open_since: int | None = None

    def see(step: Step) -> None:
        nonlocal open_since
        if step.type in ("turn/start", "turn/end"):
            open_since = step.seq if step.type == "turn/start" else None
        on_step(step)

    report = audit(sessions, session_id, on_step=see, attachments=held)
    return Audited(report, open_since)


def _audit_all(sessions: Sessions, held: Holding, *, as_json: bool) -> int:
    sound: list[bool] = []
    with output.progress("auditing", None) as advance:
        reports = _reports(sessions, held, sound, advance)
        if as_json:
            output.document_with_list({}, "sessions", map(report_record, reports))
        else:
            for audited in reports:
                _say_report(audited, held, is_short=True)
    if not as_json:
        output.say(f"{plural(len(sound), 'session')} audited, {sound.count(False)} not sound")
    if all(sound):
        return DONE
    return PARTLY if any(sound) else REFUSED


def _reports(
    sessions: Sessions, held: Holding, sound: list[bool], advance: Callable[[], None]
) -> Iterator[Audited]:
    for summary in sessions.summaries():
        audited = _audited(sessions, held, summary.stream_id, lambda _: None)
        sound.append(audited.report.is_sound)
        advance()
        yield audited


def step_text(step: Step) -> str:
    """Return one line about what an event did to the surface."""
    seqs = ", ".join(map(str, step.seqs))
    told = {
        "appended": "appended",
        "hid": f"took the place of {seqs}",
        "changed": f"changed {seqs} (plugin {step.plugin})",
        "nothing": "-",
    }
    return f"{step.seq:>6}  {one_line(step.type):<18}  {one_line(told[step.effect])}"


def _say_report(audited: Audited, held: Holding, *, is_short: bool = False) -> None:
    report = audited.report
    verdict = "sound" if report.is_sound else "NOT SOUND"
    read = plural(report.event_count, "event")
    if report.event_count < report.stored_count:
        read = f"{report.event_count} of {report.stored_count} events readable"
    output.say(f"{one_line(report.session_id)}: {verdict}, {read}")
    if report.missing:
        output.say(f"  note: {_missing_text(report.missing, held)}")
    if audited.open_since is not None:
        output.say(f"  note: {one_line(_open_text(report.session_id, audited.open_since))}")
    if is_short and report.is_sound:
        return
    counts = ", ".join(f"{count} {effect}" for effect, count in report.effects.items())
    output.say(f"  {counts or 'no event'}; {plural(report.node_count, 'node')} on the surface")
    for finding in report.findings:
        output.say(f"  {finding_text(finding)}")
    agreeing = [view.name for view in report.views if view.difference is None]
    if agreeing:
        output.say(f"  views that agree with the stored events: {', '.join(agreeing)}")
    for view in report.views:
        if view.difference is not None:
            output.say(f"  {view_text(view.name, view.difference)}")


def _open_text(session_id: str, since: int) -> str:
    return (
        f"a turn is open since seq {since}; if the process that ran it is gone, "
        f"`everfold chat {session_id} --resume` closes it and goes on"
    )


def _missing_text(missing: Sequence[MissingImage], held: Holding) -> str:
    count = plural(len(missing), "image")
    shown = ", ".join(f"{each.seq}:{each.index}" for each in missing[:_MOST_NAMED])
    more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    return f"the log shows models {count} without bytes ({shown}{more}): {held.told(len(missing))}"


def finding_text(finding: Finding) -> str:
    """Return one line about what is wrong."""
    where = "header" if finding.seq < 0 else f"seq {finding.seq}"
    return f"{one_line(finding.session_id)} {where}: {one_line(finding.message)} [{finding.code}]"


def view_text(name: str, difference: Difference) -> str:
    """Return one line about where a view differs first."""
    reason = one_line(difference.reason)
    return f"the {name} view differs first at seq {difference.seq}: {reason}"


def report_record(audited: Audited) -> dict[str, Json]:
    """Return a report as JSON (docs/cli.md)."""
    report = audited.report
    record: dict[str, Json] = {
        "session": report.session_id,
        "sound": report.is_sound,
        "events": report.event_count,
        "storedEvents": report.stored_count,
        "effects": dict(report.effects),
        "nodes": report.node_count,
        "replaceGeneration": report.replace_generation,
        "contentGeneration": report.content_generation,
        "findings": [
            {"seq": each.seq, "code": each.code, "message": each.message}
            for each in report.findings
        ],
        "views": [_view_record(view) for view in report.views],
    }
    if audited.open_since is not None:
        record["openTurnSeq"] = audited.open_since
    if report.missing:
        record["missing"] = [
            {"image": f"{each.seq}:{each.index}", "attachmentId": each.attachment_id}
            for each in report.missing
        ]
    return record


def _view_record(view: ViewCheck) -> dict[str, Json]:
    if view.difference is None:
        return {"name": view.name, "agrees": True}
    difference = {"seq": view.difference.seq, "reason": view.difference.reason}
    return {"name": view.name, "agrees": False, "firstDifference": difference}


def _step_record(step: Step) -> dict[str, Json]:
    record: dict[str, Json] = {"seq": step.seq, "type": step.type, "effect": step.effect}
    if step.seqs:
        record["seqs"] = list(step.seqs)
    return record if step.plugin is None else {**record, "plugin": step.plugin}
