"""Recordings as files: JSON lines, the head first; shipped ones come with the package."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from everfold.recordings.errors import RecordingError
from everfold.recordings.recording import VERSION, Act, Exchange, Recording
from everfold.recordings.sharing import whole

SUFFIX = ".recording.jsonl"
_HEAD = ("about", "prompt", "tools", "settings", "plugins", "capabilities", "prices")


def shipped_names() -> list[str]:
    """Return the names of the recordings that everfold ships."""
    folder = resources.files("everfold.recordings").joinpath("shipped")
    return sorted(
        file.name.removesuffix(SUFFIX) for file in folder.iterdir() if file.name.endswith(SUFFIX)
    )


def text_of(recording: Recording) -> str:
    """Return a recording as the text of its file; ASCII, so that any text survives."""
    return "".join(json.dumps(line) + "\n" for line in recording.lines())


def write_recording(recording: Recording, path: Path) -> None:
    """Write a recording for its owner alone; a file that is there is left alone.

    Raises:
        RecordingError: it cannot be written.
    """
    with _refusing(path), open(_created(path), "w", encoding="ascii") as file:
        file.write(text_of(recording))


def check_writable(path: Path) -> None:
    """Refuse a place where no recording can be written, before there is one; nothing is left there.

    Raises:
        RecordingError: something is there already, or nothing can be made there.
    """
    with _refusing(path):
        os.close(_created(path))
        path.unlink()


def _created(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        raise RecordingError(
            f"the recording {str(path)!r} is there already; name another file"
        ) from error
    except OSError as error:
        raise RecordingError(
            f"the recording {str(path)!r} cannot be written: {error.strerror}"
        ) from error


def read_recording(named: str) -> Recording:
    """Return a recording: a shipped one by its name, or a file.

    Raises:
        RecordingError: there is none, or it is no recording of this version.
    """
    if named in shipped_names():
        place = resources.files("everfold.recordings").joinpath("shipped", f"{named}{SUFFIX}")
        return parsed(place.read_text("ascii"), named)
    try:
        text = Path(named).read_text("utf-8")
    except OSError as error:
        raise RecordingError(
            f"the recording {named!r} cannot be read: {error.strerror}; shipped ones are "
            f"{', '.join(shipped_names()) or 'none'}"
        ) from error
    except ValueError as error:
        raise RecordingError(f"{named!r} is no recording: {error}") from error
    return parsed(text, named)


def parsed(text: str, name: str) -> Recording:
    """Return the recording that the text of a file holds.

    Raises:
        RecordingError: it holds none; names the line.
    """
    recording: Recording | None = None
    exchanges: list[Mapping[str, Any]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            value = json.loads(line)
            if recording is None:
                recording = _head(value, name)
            else:
                _take(recording, value, exchanges)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RecordingError(
                f"{name!r} is no recording: line {number} {_fault(error)}"
            ) from error
    if recording is None:
        raise RecordingError(f"{name!r} is no recording: it is empty")
    return recording


def _fault(error: Exception) -> str:
    """Return in words what is wrong with a line."""
    if isinstance(error, json.JSONDecodeError):
        return "is not JSON"
    if isinstance(error, KeyError):
        return f"has no {error}"
    if isinstance(error, ValueError):
        return f"cannot be read: {error}"
    return "has another form than a recording's lines"


def _head(line: Mapping[str, Any], name: str) -> Recording:
    if line.get("type") != "recording":
        raise ValueError("it is not the head of a recording")
    if line.get("version") != VERSION:
        raise RecordingError(
            f"{name!r} is a recording of version {line.get('version')}, this everfold plays {VERSION}"
        )
    return Recording(**{key: line[key] for key in _HEAD})


def _take(
    recording: Recording, line: Mapping[str, Any], exchanges: list[Mapping[str, Any]]
) -> None:
    """Take one more line; `exchanges` are the whole lines of those before it."""
    match line["type"]:
        case "act":
            recording.acts.append(Act.from_json(line))
        case "exchange":
            exchanges.append(whole(line, exchanges))
            recording.exchanges.append(Exchange.from_json(exchanges[-1]))
        case "event":
            recording.events.append(dict(line["event"]))
        case kind:
            raise ValueError(f"type {kind!r} is unknown")
