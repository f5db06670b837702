"""Talking to the command line: profiles for tests, a terminal that is typed at, sessions that crashed."""

import json
import os
import pty
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from everfold.host.opening import open_sessions
from everfold.session.deciding import AppendEvent, message
from everfold.session.events import Recorded
from everfold.store.urls import open_store
from tests.cli.programs import MODULE, environment
from tests.providers.strict_fake import StrictFake

KEY = "sk-test-0000000000000000"
PATIENCE_S = 30.0
"""After so long a hanging program fails its test; nothing is measured by it."""

OWN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes the terminal that a process has the one that its keys' signals come from, and becomes the
program. It is a program itself: Python between fork and exec may hang in a process with threads."""

CTRL_C, CTRL_D = "\x03", "\x04"


def scripted(folder: Path, *replies: Mapping[str, Any], **more: Any) -> Path:
    """Write an `everfold.toml` with a scripted model, and return its path."""
    lines = ["[routes.scripted]", 'adapter = "scripted"', 'model = "script-1"']
    lines += [f"{key} = {_toml(value)}" for key, value in more.items()]
    lines.append(f"replies = {_toml(list(replies))}")
    lines += ["[retry]", "base_ms = 1", "cap_ms = 2"]
    return _written(folder, lines)


def provided(folder: Path, fake: StrictFake, adapter: str = "openai-chat", **more: Any) -> Path:
    """Write an `everfold.toml` with a route to a fake provider, and return its path."""
    url = fake.url if adapter == "anthropic" else fake.base_url
    lines = ["[routes.fake]", f'adapter = "{adapter}"', 'model = "fake-1"', f'base_url = "{url}"']
    lines += ['api_key_env = "FAKE_KEY"']
    lines += [f"{key} = {_toml(value)}" for key, value in more.items()]
    lines += ["[retry]", "base_ms = 1", "cap_ms = 2"]
    return _written(folder, lines)


def _written(folder: Path, lines: Sequence[str]) -> Path:
    path = folder / "everfold.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def _toml(value: Any) -> str:
    """Return a value as TOML, on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def events_of(url: str, session_id: str = "session-1") -> list[Recorded]:
    """Return the stored events of a session."""
    with open_store(url, create=False, read_only=True) as store:
        return list(store.read(session_id, after=1))


def types_of(url: str, session_id: str = "session-1") -> list[str]:
    """Return the types of the stored events of a session."""
    return [event.type for event in events_of(url, session_id)]


def turn_ends(url: str, session_id: str = "session-1") -> list[str]:
    """Return how the turns of a session ended."""
    return [
        each.data["reason"]["kind"]
        for each in events_of(url, session_id)
        if each.type == "turn/end"
    ]


def wait_for(url: str, type_: str) -> None:
    """Wait until a store has an event of this type."""
    path = Path(url.removeprefix("sqlite:///"))
    over = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < over, f"there is no {path}"
        time.sleep(0.01)
    with open_store(url) as store:
        following = store.follow(0, [type_])
        patience = threading.Timer(PATIENCE_S, following.stop)
        patience.start()
        assert following.next_row() is not None, f"no {type_} was stored"
        patience.cancel()
        following.stop()


def crashed(url: str, session_id: str = "broken") -> str:
    """Store a session whose process ended in the middle of its first turn."""
    user = {
        "id": "u-1",
        "role": "user",
        "content": [{"type": "text", "text": "look"}],
        "source": {"kind": "user"},
    }
    with open_sessions(url) as sessions:
        sessions.create(session_id)
        sessions.append_batch(
            session_id,
            (
                AppendEvent("turn/start", {"turn": 1}),
                AppendEvent("step/start", {"turn": 1, "step": 1}),
                message("user/message", user),
            ),
        )
    return session_id


@dataclass
class Terminal:
    """A program on a terminal of its own, as a person has it: keys go in, text comes out.

    Attributes:
        shown: all that the terminal received.
    """

    process: "subprocess.Popen[bytes]"
    ours: int
    shown: str = ""
    _looked_at: int = field(default=0)

    def type(self, text: str, *, enter: bool = True) -> None:
        """Type text, and the return key."""
        os.write(self.ours, text.encode() + (b"\r" if enter else b""))

    def expect(self, text: str) -> None:
        """Wait until text appears after what was last expected."""
        while (found := self.shown.find(text, self._looked_at)) < 0:
            if not self._read():
                raise AssertionError(f"{text!r} never appeared in {self.shown!r}")
        self._looked_at = found + len(text)

    def end(self) -> int:
        """Wait until the program ends and return its exit code."""
        while self._read():
            pass
        return self.process.wait(PATIENCE_S)

    def _read(self) -> bool:
        if not select.select([self.ours], [], [], PATIENCE_S)[0]:
            raise AssertionError(f"the program hangs after {self.shown!r}")
        try:
            piece = os.read(self.ours, 65536)
        except OSError:
            # A terminal whose last program has ended reads as an error.
            return False
        self.shown += piece.decode(errors="surrogateescape").replace("\r\n", "\n")
        return bool(piece)


@contextmanager
def terminal(*arguments: str, cwd: Path, **env: str) -> Iterator[Terminal]:
    """Run the program on a terminal that is its own, so that Ctrl-C reaches it as a signal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", OWN_TERMINAL, *MODULE, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=cwd,
        env=environment(COLUMNS="120", LINES="40", **env),
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        os.close(ours)
