"""What `chat` and `run` are asked alike: their options, and the host that these come to."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

from everfold.agent.agent import Agent
from everfold.agent.content import Part
from everfold.cli.options import Run, store_option
from everfold.cli.talk.attaching import attached, attachment_options
from everfold.cli.talk.host import model_options, session_options, talking
from everfold.cli.talk.recording import MaybeRecorder, record_option, recorder_for
from everfold.cli.talk.signals import Ending, told_to_end
from everfold.profiles.opening import OpenProfile

Command = Callable[..., int]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of a command that talks to a model, by their names.

    Attributes:
        goes_on: whether to go on with the newest session.
    """

    images: tuple[Path, ...]
    files: tuple[Path, ...]
    new_id: str | None
    goes_on: bool
    resume: bool
    profile: str | None
    route: str | None
    model: str | None
    record: Path | None
    store: str | None


@dataclass(frozen=True, slots=True)
class Opened:
    """A host that runs as it is wanted.

    Attributes:
        ending: whether the program was told to end.
        attached: the blocks that go with the first message.
    """

    wanted: Wanted
    host: OpenProfile
    runner: asyncio.Runner
    recorder: MaybeRecorder
    ending: Ending
    attached: list[Part]

    def agent(self, session_id: str) -> Agent:
        """Return the agent of a session.

        Raises:
            ProfileError, MissingKeyError: model, prompt or tools cannot be used.
        """
        wanted = self.wanted
        return self.host.agent(
            session_id, route=wanted.route, model=wanted.model, takes_over=wanted.resume
        )


def talk_options(message: str) -> Callable[[Command], Command]:
    """Return what gives a command these options, as one argument `wanted`.

    Args:
        message: what images and files go with.
    """

    def give(command: Command) -> Command:
        @wraps(command)
        def packed(*arguments: Any, **options: Any) -> int:
            wanted = Wanted(**{each.name: options.pop(each.name) for each in fields(Wanted)})
            return command(*arguments, wanted=wanted, **options)

        options = record_option(store_option(packed))
        return attachment_options(message)(session_options(model_options(options)))

    return give


@contextmanager
def opened(run: Run, wanted: Wanted) -> Iterator[Opened]:
    """Run a host as it is wanted; what goes with the first message is stored.

    Raises:
        ProfileError, PluginError, StoreError: it cannot be run so.
        AdmissionError: an image or a file cannot be attached.
        RecordingError: the recording is there already, or cannot be written.
    """
    recorder = recorder_for(wanted.record)
    create = not wanted.goes_on
    with (
        talking(run, wanted.store, wanted.profile, wrap=recorder.wrap, create=create) as host,
        asyncio.Runner() as runner,
        recorder.writing(host),
        told_to_end() as ending,
    ):
        host.route(wanted.route)
        blocks = attached(host, wanted.images, wanted.files)
        try:
            yield Opened(wanted, host, runner, recorder, ending, blocks)
        finally:
            runner.run(host.disconnect())
