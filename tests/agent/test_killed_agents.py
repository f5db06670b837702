"""Agents in processes of their own that are killed at random moments, on both databases."""

import os
import random
import time
from multiprocessing.connection import Connection

from everfold.agent.agent import Agent
from everfold.agent.settings import AgentSettings
from everfold.audit.auditing import audit
from everfold.host.opening import open_sessions
from everfold.routes.scripted import ScriptedRoute, calls, says
from tests.agent.kit import MODEL, PLUGINS, QUICK, Host, run, unanswered
from tests.agent.test_properties import unpaired
from tests.processes import PATIENCE_S, Worker

KILLS = int(os.environ.get("EVERFOLD_AGENT_KILLS", "4"))
LONGEST_LIFE_S = 0.3


def talk_for_ever(url: str, session_id: str, pipe: Connection) -> None:
    """Take a session over and run turns with tools until killed; report each turn that is over."""

    def note(number: int) -> str:
        return f"noted {number}"

    with open_sessions(url, plugins=PLUGINS) as sessions:
        for number in range(100_000):
            script = (calls(("c", "note", {"number": number}), ("d", "note", {})), says("ok"))
            agent = Agent(
                sessions,
                session_id,
                ScriptedRoute(script),
                AgentSettings(MODEL, "be brief", QUICK),
                tools=[note],
                takes_over=number == 0,
            )
            result = run(agent.ask(f"turn {number}"))
            pipe.send((result.kind, result.end_seq))


def test_killed_agents_lose_no_turn_that_was_over_and_leave_a_sound_log(any_host: Host) -> None:
    host = any_host
    session_id = host.new_session()
    choice = random.Random(7)
    over: list[int] = []

    for _ in range(KILLS):
        worker = Worker(talk_for_ever, host.url, session_id, reports=True)
        assert worker.pipe.poll(PATIENCE_S)
        over.append(worker.pipe.recv()[1])
        time.sleep(choice.random() * LONGEST_LIFE_S)
        worker.process.kill()
        worker.process.join(PATIENCE_S)
        while worker.pipe.poll():
            try:
                over.append(worker.pipe.recv()[1])
            except EOFError:
                break

    last = run(host.agent(host.route(), session_id, takes_over=True).ask("and now?"))
    events = host.log(session_id)
    assert last.text == "You said 'and now?'; I see 0 image(s)."
    assert unanswered(events) == {}
    assert unpaired(list(host.sessions.load(session_id).messages())) == []
    assert {events[seq].type for seq in over} == {"turn/end"}
    assert audit(host.sessions, session_id).is_sound
