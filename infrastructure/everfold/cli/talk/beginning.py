"""Beginning a chat: a new session is stored with the first word, so that none is left empty."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from everfold.agent.agent import Agent
from everfold.cli.talk.asking import Talk
from everfold.cli.talk.host import check_choice, note, session_of
from everfold.cli.talk.recording import MaybeRecorder
from everfold.cli.talk.telling import Teller
from everfold.profiles.opening import OpenProfile

_UNNAMED = "session-0"
"""Stands for the id of a session that has none yet; ids are counted from 1."""


@dataclass(slots=True)
class Beginning:
    """A chat that may begin.

    Attributes:
        named: the session to go on with.
        new_id: the id of a new session; the first free one if None.
        agent_of: makes the agent of a session.
    """

    host: OpenProfile
    runner: asyncio.Runner
    recorder: MaybeRecorder
    named: str | None
    new_id: str | None
    agent_of: Callable[[str], Agent]

    def waiting(self) -> Talk | None:
        """Check what was chosen, say who is asked, and begin at once if the session is there.

        Raises:
            SessionError: session, id or profile cannot be used.
            RecordingError: a session that is there is not recorded.
        """
        check_choice(self.host, self.named, self.new_id)
        # Made before anything is stored: it checks model, prompt and tools.
        agent = self.agent_of(self.named or self.new_id or _UNNAMED)
        talk = None if self.named is None else self._talk(agent)
        session = "a new session" if self.named is None else f"session {self.named}"
        asked, profile = agent.settings.model, self.host.profile.name
        note(
            f"{session}: {asked.model} of {asked.provider}, profile {profile}; "
            "/help lists commands, Ctrl-D leaves"
        )
        return talk

    def begun(self) -> Talk:
        """Store a new session, and return the talk in it.

        Raises:
            SessionExistsError: its id was taken meanwhile.
        """
        session_id = session_of(self.host, None, self.new_id)
        note(f"session {session_id}")
        return self._talk(self.agent_of(session_id))

    def _talk(self, agent: Agent) -> Talk:
        self.recorder.begin(agent)
        return Talk(self.host, agent, self.runner, Teller(agent.cancel))
