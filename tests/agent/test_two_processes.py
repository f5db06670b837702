"""Two processes talk to one session at once (B8): refused, or one after the other; nothing shown is lost."""

from everfold.agent.agent import Agent
from everfold.agent.errors import AgentError
from everfold.agent.settings import AgentSettings
from everfold.audit.auditing import audit
from everfold.host.opening import open_sessions
from everfold.routes.scripted import ScriptedRoute, calls, says
from tests.agent.kit import MODEL, PLUGINS, QUICK, Host, run, unanswered
from tests.agent.test_properties import unpaired
from tests.processes import CONTEXT, Worker

ROUNDS = 8


def note() -> str:
    """Note something."""
    return "noted"


def talk(url: str, session_id: str, name: str) -> list[tuple[str, str, int]]:
    """Ask several times; return outcome, text and last seq of each turn that was answered or refused."""
    outcomes = []
    with open_sessions(url, plugins=PLUGINS) as sessions:
        for number in range(ROUNDS):
            said = f"{name} {number}"
            route = ScriptedRoute((calls(("c", "note", {})), says(said)), otherwise=says(said))
            settings = AgentSettings(MODEL, "be brief", QUICK)
            agent = Agent(sessions, session_id, route, settings, tools=[note])
            try:
                result = run(agent.ask(said))
            except AgentError as error:
                outcomes.append((error.code, "", -1))
            else:
                outcomes.append((result.kind, result.text, result.end_seq))
    return outcomes


def test_b8_two_processes_on_one_session_keep_one_history(any_host: Host) -> None:
    host = any_host
    session_id = host.new_session()
    barrier = CONTEXT.Barrier(2)

    workers = [
        Worker(talk, host.url, session_id, name, barrier=barrier) for name in ("left", "right")
    ]
    outcomes = [outcome for worker in workers for outcome in worker.result()]
    run(host.agent(host.route(), session_id).run_queued())

    events = host.log(session_id)
    assert {kind for kind, _, _ in outcomes} <= {"completed", "turn-open"}
    shown = [(text, seq) for kind, text, seq in outcomes if kind == "completed"]
    assert {events[seq].type for _, seq in shown} == {"turn/end"}
    stored = str(list(host.sessions.load(session_id).messages()))
    assert [text for text, _ in shown if text not in stored] == []
    turns = [event.type for event in events if event.type.startswith("turn/")]
    assert turns == ["turn/start", "turn/end"] * (len(turns) // 2)
    assert unanswered(events) == {}
    assert unpaired(list(host.sessions.load(session_id).messages())) == []
    assert audit(host.sessions, session_id).is_sound
