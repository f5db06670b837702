"""Queued input: folded from splices, taken once, by however many workers (B5)."""

import threading
from concurrent.futures import ThreadPoolExecutor

from everfold.agent.errors import TurnOpenError
from everfold.agent.inbox import Inbox, InboxReader, claim, claim_next
from everfold.host.opening import open_sessions
from everfold.routes.scripted import says
from everfold.session.events import Event
from tests.agent.kit import PLUGINS, Host, run, shown
from tests.processes import CONTEXT, Worker

WORKERS = 8
ITEMS = 50


def splice(seq: int, **data: object) -> Event:
    return Event("agent/inbox/spliced", seq, {"target": "next-turn", "start": 0, **data})


def item(name: str) -> dict[str, object]:
    return {"id": name, "role": "user", "content": [], "source": {"kind": "user"}}


def names(inbox: Inbox) -> list[str]:
    return [message["id"] for message in inbox.next_turn]


def test_splices_insert_and_remove_at_their_place() -> None:
    inbox = Inbox().followed(
        [
            splice(0, inserted=[item("a"), item("c")]),
            splice(1, start=1, inserted=[item("b")]),
            splice(2, removedCount=1, inserted=[]),
        ]
    )

    assert (names(inbox), inbox.next_seq) == (["b", "c"], 3)


def test_splices_of_another_form_change_nothing() -> None:
    inbox = Inbox().followed(
        [
            splice(0, inserted=[item("a")]),
            splice(1, target="elsewhere", inserted=[item("b")]),
            splice(2, start=-1, inserted=[item("b")]),
            splice(3, inserted=None),
        ]
    )

    assert names(inbox) == ["a"]


def test_an_item_that_is_no_message_is_taken_out_as_cancelled() -> None:
    inbox = Inbox().followed([splice(0, inserted=[{"id": 7}, item("a"), item("b")])])

    claimed = claim(inbox, "next-turn", 1)

    assert [message["id"] for message in claimed.messages] == ["a"]
    assert [wish.data.get("outcome") for wish in claimed.wishes] == ["canceled", None]


def test_a_broken_item_in_the_queue_does_not_block_the_session(host: Host) -> None:
    agent = host.agent(host.route())
    broken = {"target": "next-turn", "start": 0, "inserted": [{"id": 7, "content": "?"}]}
    host.sessions.append(agent.session_id, "agent/inbox/spliced", broken)

    assert run(agent.ask("hello")).text == "You said 'hello'; I see 0 image(s)."


def take_all(url: str, session_id: str) -> list[str]:
    """Take items until none is left."""
    with open_sessions(url, plugins=PLUGINS) as sessions:
        reader = InboxReader(sessions, session_id)
        taken = []
        while (message := claim_next(reader, sessions, session_id, "next-turn")) is not None:
            taken.append(message["id"])
        return taken


def fill(host: Host) -> tuple[str, list[str]]:
    agent = host.agent(host.route())

    async def queue() -> list[str]:
        return [await agent.queue(f"item {number}") for number in range(ITEMS)]

    return agent.session_id, run(queue())


def test_b5_eight_threads_take_each_item_once(host: Host) -> None:
    session_id, queued = fill(host)

    with ThreadPoolExecutor(WORKERS) as pool:
        taken = list(pool.map(lambda _: take_all(host.url, session_id), range(WORKERS)))

    assert sorted(name for names_ in taken for name in names_) == sorted(queued)


def test_b5_eight_processes_take_each_item_once(any_host: Host) -> None:
    session_id, queued = fill(any_host)
    barrier = CONTEXT.Barrier(WORKERS)

    workers = [Worker(take_all, any_host.url, session_id, barrier=barrier) for _ in range(WORKERS)]

    taken = [name for worker in workers for name in worker.result()]
    assert sorted(taken) == sorted(queued)


def test_b8_agents_in_two_threads_take_turns_or_are_refused(host: Host) -> None:
    session_id = host.new_session()
    barrier = threading.Barrier(2)

    def work(name: str) -> str:
        route = host.route(says(f"to {name}"))
        agent = host.agent(route, session_id)
        barrier.wait(30)
        try:
            return run(agent.ask(name)).kind
        except TurnOpenError as error:
            return error.code

    with ThreadPoolExecutor(2) as pool:
        kinds = set(pool.map(work, ["one", "two"]))

    assert kinds <= {"completed", "turn-open"}
    assert "completed" in kinds
    turns = [event.type for event in host.log(session_id) if event.type.startswith("turn/")]
    assert turns == ["turn/start", "turn/end"] * (len(turns) // 2)


def test_what_joins_the_next_step_stays_when_the_turn_is_cancelled(host: Host) -> None:
    route = host.route(says("ok"))
    agent = host.agent(route)
    run(agent.queue("remember this", target="next-step"))

    run(agent.ask("go"))

    assert shown(route)[-2:] == ["user: go", "user: remember this"]
