"""What people at a terminal can do about a refusal, in place of what a program can do."""

from collections.abc import Callable, Mapping
from typing import Any

from everfold.session.errors import SessionError


def _before(error: Any) -> str | None:
    if error.seq is None or error.seq < 1:
        return None
    return f"`everfold show {error.session_id} --at {error.seq - 1}` shows it as it was before"


_ADVICE: Mapping[str, Callable[[Any], str | None]] = {
    "busy": lambda error: (
        f"if the process that ran it is gone, `everfold resume {error.session_id}` frees the session"
    ),
    "store-corrupt": _before,
    "turn-open": lambda error: (
        f"if it is gone, add --resume, or run `everfold resume {error.session_id}`"
    ),
}
"""By the code of the error; a module of the library is not loaded for it."""


def _beyond(error: Any) -> str:
    if error.last < 0:
        return f"--at {error.boundary}: the session has no event yet"
    return f"--at {error.boundary}: the session has events 0 to {error.last}"


def _inside(error: Any) -> str:
    where = f"events 0 to {error.boundary} end inside the turn that starts at seq {error.seq}"
    ends = "`everfold log SESSION --type turn/end` shows where turns end"
    if error.seq == 0:
        return f"{where}, and nothing is before it; copy up to the end of a turn: {ends}"
    return f"{where}; `--at {error.seq - 1}` copies what is before it; {ends}"


def _unknown(error: Any) -> str:
    if error.seq is None:
        return str(error)
    said = f"seq {error.seq}: {error}"
    return said if error.seq < 1 else f"{said}; `--at {error.seq - 1}` shows what is before it"


_WORDS: Mapping[str, Callable[[Any], str]] = {
    "fork-boundary": _beyond,
    "fork-open-turn": _inside,
    "unknown-event": _unknown,
}
"""By the code of the error: all that is said, in the words of an option."""


def message_of(error: SessionError) -> str:
    """Return an error's message with advice for the command line."""
    if error.code in _WORDS:
        return _WORDS[error.code](error)
    told = _ADVICE.get(error.code)
    if told is None or not hasattr(error, "session_id"):
        return str(error)
    advice = told(error)
    return error.fact if advice is None else f"{error.fact}; {advice}"


_OF_FAILURES: Mapping[str, str] = {
    "CONTEXT_WINDOW_EXCEEDED": "shorten the history with `everfold compact {id}`",
    "IMAGE_OFFLOAD_REQUIRED": (
        "no more images can be omitted automatically; `everfold images {id}` lists them, "
        "`everfold omit {id} SEQ:INDEX` omits one"
    ),
    "INVALID_REQUEST": (
        "the provider refuses something in the history; `everfold images {id}` lists the images, "
        "`everfold omit {id} SEQ:INDEX` omits one, `everfold compact {id}` replaces old messages "
        "by a summary"
    ),
    "UNSUPPORTED_CONTENT": (
        "choose a route that takes this content, or omit it: `everfold images {id}` lists the "
        "images, `everfold omit {id} SEQ:INDEX` omits one of a user or a tool; older messages go "
        "into a summary with `everfold compact {id}`, and `everfold fork {id} --at SEQ` makes a "
        "copy from before it"
    ),
}


def advice_for(code: str, session_id: str) -> str | None:
    """Return what people can do about a failed request; None where the library's own advice fits."""
    advice = _OF_FAILURES.get(code)
    return None if advice is None else advice.format(id=session_id)
