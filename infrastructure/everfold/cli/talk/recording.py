"""Recording what a command does: `--record FILE`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import click

from everfold.agent.agent import Agent
from everfold.agent.content import Part
from everfold.llm.route import Route
from everfold.profiles.opening import OpenProfile
from everfold.recordings.files import check_writable, write_recording
from everfold.recordings.recorder import Recorder
from everfold.recordings.recording import Act

F = TypeVar("F", bound=Callable[..., object])


def record_option(command: F) -> F:
    """Give a command the option that records its session."""
    return click.option(
        "--record",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Write a recording of the session, which must be new; `everfold replay` plays it.",
    )(command)


def recorder_for(path: Path | None) -> "MaybeRecorder":
    """Return what records into a file, or does nothing if there is none.

    Raises:
        RecordingError: the file is there already, or cannot be written.
    """
    if path is not None:
        check_writable(path)
    return MaybeRecorder(path)


@dataclass(slots=True)
class MaybeRecorder:
    """A recorder of one session; with no file it does nothing."""

    path: Path | None
    _recorder: Recorder = field(default_factory=Recorder)
    _agent: Agent | None = None

    def wrap(self, route: Route) -> Route:
        """Return a route that records, or the route itself."""
        return route if self.path is None else self._recorder.wrap(route)

    def begin(self, agent: Agent) -> None:
        """Record the session of an agent, from its first event on.

        Raises:
            RecordingError: it is not new.
        """
        if self.path is not None:
            self._recorder.begin(agent.sessions, agent.session_id)
            self._agent = agent

    def asked(self, content: Sequence[Part]) -> None:
        """Note that something is asked."""
        blocks = [
            {"type": "text", "text": part} if isinstance(part, str) else part for part in content
        ]
        self.note(Act("ask", tuple(blocks)))

    def note(self, act: Act) -> None:
        """Note what a person does, before it is done."""
        if self.path is not None:
            self._recorder.note(act)

    @contextmanager
    def writing(self, host: OpenProfile) -> Iterator[None]:
        """Write the recording when the block ends, however it ends."""
        try:
            yield
        finally:
            if self.path is not None and self._agent is not None:
                places = (str(Path.cwd()), str(Path.home()))
                self._recorder.paths = [place for place in places if len(place) > 1]
                self._recorder.secrets = host.secrets
                made = self._recorder.recording(self._agent, host.acting())
                write_recording(made, self.path)
