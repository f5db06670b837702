"""Beginning a session: a new one is stored with the first word, so that none is left empty."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from everfold.agent import wishes
from everfold.agent.agent import Agent
from everfold.agent.content import Part, content_of
from everfold.agent.inputs import USER
from everfold.agent.settings import AgentSettings
from everfold.cli.talk.asking import Talk
from everfold.cli.talk.host import check_choice, note, session_of
from everfold.cli.talk.telling import Teller
from everfold.cli.talk.wanting import Opened
from everfold.host.sessions import Sessions
from everfold.profiles.opening import OpenProfile
from everfold.session.deciding import AppendEvent, message
from everfold.store.urls import open_store


def opening(host: OpenProfile, content: Sequence[Part]) -> list[AppendEvent]:
    """Return the events that put content to a model in a session that has none yet.

    Raises:
        InputError: it cannot be put to a model.
    """
    new_id = host.sessions.means.new_id
    asked = wishes.user_message(new_id(), content_of(content, None).blocks, USER)
    prompt = wishes.system_data(1, 1, new_id(), host.profile.system_prompt)
    return [
        wishes.turn_start(1),
        wishes.step_start(1, 1),
        message("system/message", prompt),
        message("user/message", asked),
    ]


def agent_of(work: Opened, named: str | None, content: Sequence[Part]) -> Agent:
    """Return the agent of a named session, or of a new one that is stored if content may begin it.

    Raises:
        SessionError: session, id, profile or content cannot be used; nothing was stored.
    """
    check_choice(work.host, named, work.wanted.new_id)
    if named is not None:
        return work.agent(named)
    _tried(work, opening(work.host, content))
    return work.agent(session_of(work.host, None, work.wanted.new_id))


def _tried(work: Opened, first: Sequence[AppendEvent]) -> AgentSettings:
    """Begin a session with these events in a store that is thrown away, and return its settings.

    Raises:
        SessionError: model, prompt, tools or events cannot be used.
    """
    sessions = work.host.sessions
    with open_store("sqlite://") as store:
        scratch = Sessions(store, sessions.composition, means=sessions.means)
        session = scratch.create()
        scratch.append_batch(session.id, first)
        host = replace(work.host, sessions=scratch)
        return replace(work, host=host).agent(session.id).settings


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
        host = self.work.host
        check_choice(host, self.named, self.work.wanted.new_id)
        talk = None if self.named is None else self._talk(self.work.agent(self.named))
        settings = _tried(self.work, ()) if talk is None else talk.agent.settings
        session = "a new session" if self.named is None else f"session {self.named}"
        asked = settings.model
        note(
            f"{session}: {asked.model} of {asked.provider}, profile {host.profile.name}; "
            "/help lists commands, Ctrl-D leaves"
        )
        return talk

    def begun(self, first: Sequence[AppendEvent]) -> Talk:
        """Store a new session, and return the talk in it.

        Args:
            first: what it is to begin with; nothing is stored if it may not.

        Raises:
            SessionExistsError: its id was taken meanwhile.
            SessionError: it cannot begin so.
        """
        _tried(self.work, first)
        session_id = session_of(self.work.host, None, self.work.wanted.new_id)
        note(f"session {session_id}")
        return self._talk(self.work.agent(session_id))

    def _talk(self, agent: Agent) -> Talk:
        self.work.recorder.begin(agent)
        return Talk(self.work.host, agent, self.work.runner, Teller(agent.cancel))
