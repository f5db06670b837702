"""The program's edge: what went wrong becomes one message and an exit code, never a traceback."""

import errno
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress

import click

from everfold.cli.advising import message_of
from everfold.cli.options import Run
from everfold.cli.visible import visible, visible_json
from everfold.session.errors import SessionError

DONE, REFUSED, USAGE, PARTLY = 0, 1, 2, 3
DEFECT, INTERRUPTED, READER_GONE = 70, 130, 141

EXIT_CODES = {
    DONE: "done",
    REFUSED: "refused, or something is wrong",
    USAGE: "wrong usage",
    PARTLY: "done in part",
    DEFECT: "a defect of everfold or of a plugin",
    INTERRUPTED: "interrupted",
    READER_GONE: "nobody reads the output any more",
}
"""Every exit code of the program, and what it means."""

DEBUG_VARIABLE = "EVERFOLD_DEBUG"


class ReaderGoneError(Exception):
    """Nobody reads standard output any more."""


def run_guarded(command: Callable[[], object], run: Run, arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; say on standard error what went wrong."""
    try:
        status = command()
        sys.stdout.flush()
    except (ReaderGoneError, BrokenPipeError):
        return _reader_gone()
    except (click.Abort, KeyboardInterrupt):
        sys.stderr.write("\n")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the edge: a plugin may raise anything, a user sees one line
        if os.environ.get(DEBUG_VARIABLE):
            traceback.print_exc()
        return _report(error, run, as_json="--json" in arguments)
    return status if isinstance(status, int) else DONE


def _report(error: Exception, run: Run, *, as_json: bool) -> int:
    is_written = _flushed()
    status, facts = _told(error)
    if isinstance(error, OSError) and (not is_written or _is_full(error)):
        facts["message"] = f"the output could not be written: {error.strerror or error}"
    facts = {
        name: _one_line(run.clean(value)) if isinstance(value, str) else value
        for name, value in facts.items()
    }
    if as_json:
        text = visible_json(json.dumps({"error": facts}))
    else:
        text = visible(f"everfold: {facts['message']}")
    sys.stderr.write(text + "\n")
    return status


def _flushed() -> bool:
    """Write what was printed so far; False if it cannot be written, and is dropped."""
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
        return False
    return True


def _is_full(error: OSError) -> bool:
    # What writes a file of its own names it; an unbuffered output fails at once, and is flushed then.
    return error.errno in (errno.ENOSPC, errno.EDQUOT) and error.filename is None


def _one_line(text: str) -> str:
    """Return a message whose lines, as drivers write them, are one."""
    return re.sub(r"\s*[\r\n]\s*", " ", text)


def _told(error: Exception) -> tuple[int, dict[str, object]]:
    """Return the exit code of an error, and what to tell about it."""
    if isinstance(error, click.UsageError):
        hint = "" if error.ctx is None else f" (see `{error.ctx.command_path} --help`)"
        return USAGE, {"code": "usage", "message": error.format_message() + hint}
    if isinstance(error, click.ClickException):
        return REFUSED, {"code": "refused", "message": error.format_message()}
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    if isinstance(error, SessionError):
        facts: dict[str, object] = {"code": error.code, "message": f"{message_of(error)}{notes}"}
        return REFUSED, facts if error.seq is None else {**facts, "seq": error.seq}
    if isinstance(error, OSError):
        return REFUSED, {"code": "system", "message": f"{error}{notes}"}
    message = (
        f"{type(error).__name__}: {error}{notes}; this is a defect of everfold or of a plugin, "
        f"{DEBUG_VARIABLE}=1 shows where"
    )
    return DEFECT, {"code": "defect", "message": message}


def _reader_gone() -> int:
    _drop_output()
    return READER_GONE


def _drop_output() -> None:
    # The interpreter flushes standard output once more when it ends, and would complain.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def is_reader_gone(error: OSError) -> bool:
    """Tell whether an error says that nobody reads what is written."""
    return isinstance(error, BrokenPipeError) or error.errno == errno.EPIPE
