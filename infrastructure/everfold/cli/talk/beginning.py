"""Beginning a chat: a new session is stored with the first word, so that none is left empty."""

from dataclasses import dataclass

from everfold.agent.agent import Agent
from everfold.cli.talk.asking import Talk
from everfold.cli.talk.host import check_choice, note, session_of
from everfold.cli.talk.telling import Teller
from everfold.cli.talk.wanting import Opened

_UNNAMED = "session-0"
"""Stands for the id of a session that has none yet; ids are counted from 1."""


@dataclass(slots=True)
class Beginning:
    """A chat that may begin.

    Attributes:
        named: the session to go on with; a new one if None.
    """

    work: Opened
    named: str | None

    def waiting(self) -> Talk | None:
        """Check what was chosen, say who is asked, and begin at once if the session is there.

        Raises:
            SessionError: session, id or profile cannot be used.
            RecordingError: a session that is there is not recorded.
        """
        host, new_id = self.work.host, self.work.wanted.new_id
        check_choice(host, self.named, new_id)
        # Made before anything is stored: it checks model, prompt and tools.
        agent = self.work.agent(self.named or new_id or _UNNAMED)
        talk = None if self.named is None else self._talk(agent)
        session = "a new session" if self.named is None else f"session {self.named}"
        asked = agent.settings.model
        note(
            f"{session}: {asked.model} of {asked.provider}, profile {host.profile.name}; "
            "/help lists commands, Ctrl-D leaves"
        )
        return talk

    def begun(self) -> Talk:
        """Store a new session, and return the talk in it.

        Raises:
            SessionExistsError: its id was taken meanwhile.
        """
        session_id = session_of(self.work.host, None, self.work.wanted.new_id)
        note(f"session {session_id}")
        return self._talk(self.work.agent(session_id))

    def _talk(self, agent: Agent) -> Talk:
        self.work.recorder.begin(agent)
        return Talk(self.work.host, agent, self.work.runner, Teller(agent.cancel))
