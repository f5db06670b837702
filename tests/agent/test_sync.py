"""The blocking twin of the agent."""

import signal
import threading
from collections.abc import Sequence

import pytest

from everfold.agent.errors import AgentClosedError
from everfold.agent.sync import SyncAgent
from everfold.llm.chunks import TextDelta
from everfold.plugins.waterfalls import PreStepAnswer, PreStepQuestion
from everfold.routes.scripted import ScriptedRoute, hangs, says
from everfold.session.errors import SessionNotFoundError
from everfold.session.events import Recorded
from tests.agent.kit import PATIENCE_S, Host, shown


def test_the_blocking_agent_gives_the_same_results(host: Host) -> None:
    with SyncAgent(host.agent(host.route(says("hello")))) as agent:
        agent.queue("first")

        results = agent.run_queued()

    assert [result.text for result in results] == ["hello"]


def test_the_blocking_agent_raises_what_the_agent_raises(host: Host) -> None:
    made = host.agent(host.route(), host.sessions.create("nowhere"))
    host.sessions.delete("nowhere")

    with SyncAgent(made) as agent, pytest.raises(SessionNotFoundError):
        agent.ask("hi")


def test_a_plugin_that_exits_ends_the_blocked_ask_and_not_the_agent(host: Host) -> None:
    async def leaving(question: PreStepQuestion, ask_next: object) -> PreStepAnswer:
        raise SystemExit(4)

    leave = host.mounted.waterfalls.pre_step.register("acme-exits", leaving)
    with SyncAgent(host.agent(host.route(says("hello")))) as agent:
        with pytest.raises(SystemExit):
            agent.ask("hi")
        leave()

        result = agent.ask("again")

    assert (result.kind, result.text) == ("completed", "hello")


def test_a_blocked_ask_is_cancelled_from_another_thread(host: Host) -> None:
    begun = threading.Event()

    class Begun:
        def on_chunk(self, turn: int, step: int, chunk: object) -> None:
            begun.set()

        def on_events(self, events: object) -> None:
            return

    inner = host.agent(host.route(hangs(TextDelta(0, "half"))))
    inner.watch(Begun())
    with SyncAgent(inner) as agent:
        stopper = threading.Thread(target=stop_when, args=(begun, agent))
        stopper.start()

        result = agent.ask("think")
        stopper.join()

    assert (result.kind, result.text) == ("aborted", "half")


def stop_when(begun: threading.Event, agent: SyncAgent) -> None:
    begun.wait(30)
    agent.cancel()


def test_closing_twice_does_nothing(host: Host) -> None:
    agent = SyncAgent(host.agent(host.route()))
    agent.close()

    agent.close()

    assert host.log(agent.agent.session_id) == []


def test_an_interrupt_takes_back_an_input_that_waits_and_leaves_the_running_turn(
    host: Host,
) -> None:
    route = host.route(hangs(TextDelta(0, "half")), says("next"))
    inner = host.agent(route)
    main, results = threading.main_thread().ident, []
    assert main is not None
    begun = Interrupting(main)
    inner.watch(begun)
    with SyncAgent(inner) as agent:
        running = threading.Thread(target=lambda: results.append(agent.ask("first")))
        running.start()
        begun.is_begun.wait(PATIENCE_S)
        begun.is_armed = True

        with pytest.raises(KeyboardInterrupt):
            agent.ask("second")
        is_running = running.is_alive()
        agent.cancel()
        running.join()
        text = agent.ask("next").text

    assert (is_running, results[0].kind, text) == (True, "aborted", "next")
    assert "user: second" not in shown(route)


class Interrupting:
    """Sends an interrupt to a thread when an input is queued."""

    def __init__(self, thread: int) -> None:
        self._thread = thread
        self.is_begun, self.is_armed = threading.Event(), False

    def on_chunk(self, turn: int, step: int, chunk: object) -> None:
        self.is_begun.set()

    def on_events(self, events: Sequence[Recorded]) -> None:
        if self.is_armed and any(event.data.get("inserted") for event in events):
            self.is_armed = False
            signal.pthread_kill(self._thread, signal.SIGINT)


def test_a_closed_blocking_agent_says_so(host: Host) -> None:
    agent = SyncAgent(host.agent(host.route()))
    agent.close()

    with pytest.raises(AgentClosedError):
        agent.ask("hi")
    agent.cancel()

    assert host.log(agent.agent.session_id) == []


def test_threads_that_close_at_once_all_return(host: Host) -> None:
    agent = SyncAgent(host.agent(host.route()))
    closing = [threading.Thread(target=agent.close, daemon=True) for _ in range(8)]

    for thread in closing:
        thread.start()
    for thread in closing:
        thread.join(PATIENCE_S)

    assert not any(thread.is_alive() for thread in closing)


def test_closing_while_threads_ask_answers_or_refuses_each(host: Host) -> None:
    agent = SyncAgent(host.agent(host.route()))
    ended: list[str] = []

    def ask(number: int) -> None:
        try:
            ended.append(agent.ask(f"number {number}").kind)
        except AgentClosedError:
            ended.append("refused")

    asking = [threading.Thread(target=ask, args=(n,), daemon=True) for n in range(6)]
    for thread in asking:
        thread.start()
    agent.close()
    for thread in asking:
        thread.join(PATIENCE_S)

    assert len(ended) == 6
    assert set(ended) <= {"completed", "aborted", "refused"}


def test_closing_hangs_up_what_its_routes_keep_open(host: Host) -> None:
    closed: list[bool] = []

    class Connected(ScriptedRoute):
        async def close(self) -> None:
            closed.append(threading.current_thread() is not threading.main_thread())

    with SyncAgent(host.agent(Connected([says("hello")]))) as agent:
        agent.ask("hi")

    assert closed == [True]
