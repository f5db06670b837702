"""Where read models keep their checkpoints: in memory, or in files that may be deleted at any time."""

import os
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import orjson

from everfold.plugins.read_models import Checkpoint
from everfold.session.frozen import Json

_POSITION = "position"


class Checkpoints(Protocol):
    """Keeps the checkpoints of read models; what is lost is made anew from the log."""

    def load(self, session_id: str, name: str) -> tuple[Checkpoint, str] | None:
        """Return a checkpoint and the id of the last event in it, None if there is none."""
        ...

    def save(self, session_id: str, checkpoint: Checkpoint, event_id: str) -> None:
        """Keep a checkpoint in place of the one before."""
        ...

    def load_position(self) -> int:
        """Return the position of the global order that a follower has reached; 0 at first."""
        ...

    def save_position(self, position: int) -> None:
        """Keep that position."""
        ...


class MemoryCheckpoints:
    """Keeps checkpoints for as long as the process runs."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[Checkpoint, str]] = {}
        self._position = 0

    def load(self, session_id: str, name: str) -> tuple[Checkpoint, str] | None:
        """Return a checkpoint and the id of the last event in it, None if there is none."""
        return self._kept.get((session_id, name))

    def save(self, session_id: str, checkpoint: Checkpoint, event_id: str) -> None:
        """Keep a checkpoint in place of the one before."""
        self._kept[session_id, checkpoint.name] = (checkpoint, event_id)

    def load_position(self) -> int:
        """Return the position that a follower has reached."""
        return self._position

    def save_position(self, position: int) -> None:
        """Keep that position."""
        self._position = position


class FileCheckpoints:
    """Keeps checkpoints as JSON files of one folder; a damaged file counts as none.

    File names are digests, so any session id is safe. Files are for their owner alone.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def load(self, session_id: str, name: str) -> tuple[Checkpoint, str] | None:
        """Return a checkpoint and the id of the last event in it, None if there is none."""
        data = self._read(self._file(session_id, name))
        if not isinstance(data, dict) or data.get("sessionId") != session_id:
            return None
        checkpoint, event_id = Checkpoint.from_json(data.get("checkpoint")), data.get("eventId")
        if checkpoint is None or not isinstance(event_id, str):
            return None
        return checkpoint, event_id

    def save(self, session_id: str, checkpoint: Checkpoint, event_id: str) -> None:
        """Keep a checkpoint in place of the one before."""
        data = {
            "sessionId": session_id,
            "eventId": event_id,
            "checkpoint": checkpoint.to_json(),
        }
        self._write(self._file(session_id, checkpoint.name), data)

    def load_position(self) -> int:
        """Return the position that a follower has reached; 0 if none is kept."""
        position = self._read(self._folder / f"{_POSITION}.json")
        return position if type(position) is int and position >= 0 else 0

    def save_position(self, position: int) -> None:
        """Keep that position."""
        self._write(self._folder / f"{_POSITION}.json", position)

    def _file(self, session_id: str, name: str) -> Path:
        digest = sha256(f"{name}\0{session_id}".encode()).hexdigest()
        return self._folder / f"{digest}.json"

    def _read(self, file: Path) -> Json:
        try:
            return orjson.loads(file.read_bytes())
        except (FileNotFoundError, orjson.JSONDecodeError):
            return None

    def _write(self, file: Path, data: Json) -> None:
        # Written beside and moved into place: a crash leaves the old file or the new one.
        handle, name = tempfile.mkstemp(dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(orjson.dumps(data))
            Path(name).replace(file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
