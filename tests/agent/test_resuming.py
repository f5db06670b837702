"""Crashes, take-overs and other writers: nothing is repeated silently, nobody answers twice."""

import asyncio
from pathlib import Path

import pytest

from everfold.agent.errors import TakenOverError, TurnOpenError
from everfold.agent.inbox import InboxReader, claim
from everfold.llm.chunks import TextDelta
from everfold.routes.scripted import Reply, calls, hangs, says
from everfold.session.deciding import AppendEvent, message
from everfold.session.errors import StoreError
from tests.agent.faults import CrashError, crashing, failing, faulty
from tests.agent.kit import Host, run, shown, unanswered


def crash(host: Host, session_id: str, at: int, *, is_stored: bool) -> list[str]:
    """Run a turn with a tool in a process that dies at its n-th append; return what the tool did."""
    done: list[str] = []

    def pay() -> str:
        done.append("paid")
        return "paid"

    sessions = crashing(host.sessions, at, is_stored=is_stored)
    route = host.route(calls(("c", "pay", {})), says("done"))
    agent = host.agent(route, session_id, tools=[pay], sessions=sessions)
    with pytest.raises(CrashError):
        run(agent.ask("pay the bill"))
    return done


APPENDS = 5
"""Commits of that turn: open, header, answer, result, step; the sixth ends it."""


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("at", range(1, APPENDS + 2))
def test_a_crash_at_any_commit_leaves_a_session_that_goes_on(
    host: Host, at: int, is_stored: bool
) -> None:
    session_id = host.new_session()
    crash(host, session_id, at, is_stored=is_stored)
    route = host.route()
    agent = host.agent(route, session_id, takes_over=True)

    result = run(agent.ask("where are we?"))

    events = host.log(session_id)
    assert result.kind == "completed"
    assert unanswered(events) == {}
    assert not host.sessions.load(session_id).is_turn_open


def test_r325_a_tool_whose_outcome_is_unknown_is_not_run_again(host: Host) -> None:
    session_id = host.new_session()
    done = crash(host, session_id, 4, is_stored=False)
    route = host.route()
    agent = host.agent(route, session_id, takes_over=True)

    run(agent.ask("where are we?"))

    assert done == ["paid"]
    result = host.data(session_id, "tool/result")[0]
    assert result["error"]["code"] == "TOOL_OUTCOME_UNKNOWN"
    assert any("check before calling it again" in line for line in shown(route))


def test_d8_the_answer_to_an_interrupted_call_is_stored_once(host: Host) -> None:
    session_id = host.new_session()
    crash(host, session_id, 4, is_stored=False)
    for _ in range(2):
        with host.other() as theirs:
            agent = host.agent(host.route(), session_id, takes_over=True, sessions=theirs)
            run(agent.ask("hello"))

    assert len(host.data(session_id, "tool/result")) == 1


def test_an_input_that_was_queued_before_a_crash_is_not_lost(host: Host) -> None:
    session_id = host.new_session()
    sessions = crashing(host.sessions, 2, is_stored=False)
    agent = host.agent(host.route(), session_id, sessions=sessions)
    run(agent.queue("pay the bill"))
    with pytest.raises(CrashError):
        run(agent.run_queued())

    results = run(host.agent(host.route(), session_id).run_queued())

    assert [result.text for result in results] == ["You said 'pay the bill'; I see 0 image(s)."]


def test_an_input_that_was_being_stored_in_a_crash_is_whole_or_not_there(host: Host) -> None:
    session_id = host.new_session()
    crash(host, session_id, 1, is_stored=False)
    assert host.log(session_id) == []

    crash(host, session_id, 1, is_stored=True)

    assert host.types(session_id) == ["turn/start", "step/start", "system/message", "user/message"]


def test_an_open_turn_of_another_process_is_refused_before_the_model_is_asked_b8(
    host: Host,
) -> None:
    session_id = host.new_session()
    crash(host, session_id, 3, is_stored=False)
    route = host.route()

    with pytest.raises(TurnOpenError, match="is inside turn 1") as caught:
        run(host.agent(route, session_id).ask("hello"))

    assert (route.sent, caught.value.code, caught.value.kept) == ([], "turn-open", None)
    assert "queued" not in str(caught.value)
    host.sessions.resume(session_id)
    assert run(host.agent(route, session_id).run_queued()) == []


def test_an_input_with_a_key_that_meets_an_open_turn_is_said_to_be_queued_and_runs_later(
    host: Host,
) -> None:
    session_id = host.new_session()
    crash(host, session_id, 3, is_stored=False)

    with pytest.raises(TurnOpenError, match="the input is queued and is run after") as caught:
        run(host.agent(host.route(), session_id).ask("hello", key="k"))

    assert caught.value.kept == "queued"
    host.sessions.resume(session_id)
    (result,) = run(host.agent(host.route(says("hi")), session_id).run_queued())
    assert run(host.agent(host.route(), session_id).ask("hello", key="k")) == result


def test_an_input_that_another_process_is_answering_is_said_to_be_in_its_turn(host: Host) -> None:
    session_id = host.new_session()
    run(host.agent(host.route(), session_id).queue("hello", key="k"))
    session = host.sessions.load(session_id)
    inbox = InboxReader(host.sessions, session_id).at(session)
    (message_,) = inbox.next_turn
    taking = [AppendEvent("turn/start", {"turn": 1}), *claim(inbox, "next-turn").wishes]
    host.sessions.append_batch(session_id, [*taking, message("user/message", message_)])

    with pytest.raises(TurnOpenError, match="the input is part of that turn") as caught:
        run(host.agent(host.route(), session_id).ask("hello", key="k"))

    assert caught.value.kept == "taken"


def test_a_turn_that_was_taken_over_stops_before_the_model_is_asked_again_b8(host: Host) -> None:
    def yield_up() -> str:
        with host.other() as theirs:
            theirs.resume(agent.session_id)
        return "result"

    route = host.route(calls(("c", "yield_up", {})), says("never"))
    agent = host.agent(route, tools=[yield_up])

    with pytest.raises(TakenOverError, match="taken over by another process"):
        run(agent.ask("go"))

    events = host.log(agent.session_id)
    assert len(route.sent) == 1
    assert unanswered(events) == {}
    assert events[-1].type == "session/end-seed"


def test_an_answer_that_comes_after_a_take_over_is_not_stored_b8(host: Host) -> None:
    route = host.route(lambda _: taken_over())
    agent = host.agent(route)

    def taken_over() -> Reply:
        with host.other() as theirs:
            other = host.agent(
                host.route(says("mine")), agent.session_id, takes_over=True, sessions=theirs
            )
            theirs.resume(other.session_id)
        return says("late")

    with pytest.raises(TakenOverError):
        run(agent.ask("go"))

    assert host.data(agent.session_id, "assistant/message") == []


def test_an_agent_goes_on_after_its_turn_was_taken_over(host: Host) -> None:
    def yield_up() -> None:
        host.sessions.resume(agent.session_id)

    agent = host.agent(host.route(calls(("c", "yield_up", {})), says("ok")), tools=[yield_up])
    with pytest.raises(TakenOverError):
        run(agent.ask("go"))

    again = host.agent(host.route(says("ok")), agent.session_id)

    assert run(again.ask("once more")).text == "ok"


def test_a_store_that_fails_midway_is_told_and_the_same_agent_goes_on(host: Host) -> None:
    sessions = failing(host.sessions, 3)
    route = host.route(says("lost"), says("ok"))
    agent = host.agent(route, sessions=sessions)

    async def talk() -> str:
        with pytest.raises(StoreError, match="the server is away"):
            await agent.ask("one")
        return (await agent.ask("two")).text

    assert run(talk()) == "ok"
    ends = [data["reason"]["kind"] for data in host.data(agent.session_id, "turn/end")]
    assert ends == ["interrupted", "completed"]


def test_other_writers_between_our_commits_lose_nothing_b9(host: Host) -> None:
    def other() -> str:
        with host.other() as theirs:
            theirs.append(agent.session_id, "todo/write", {"todos": []})
        return "ok"

    agent = host.agent(host.route(calls(("c", "other", {})), says("ok")), tools=[other])

    assert run(agent.ask("go")).text == "ok"
    assert len(host.data(agent.session_id, "todo/write")) == 1
    assert [event.seq for event in host.log(agent.session_id)] == list(
        range(len(host.log(agent.session_id)))
    )


def test_c4_a_fork_is_refused_inside_a_turn_and_its_cut_before_it_is_whole(host: Host) -> None:
    children: list[str] = []

    def fork() -> str:
        start = host.sessions.load(agent.session_id).latest("turn/start")
        assert start is not None
        children.append(host.sessions.fork(agent.session_id, boundary=start.seq - 1))
        return "forked"

    agent = host.agent(host.route(says("a"), calls(("c", "fork", {})), says("b")), tools=[fork])
    run(agent.ask("one"))
    run(agent.ask("two"))

    child = host.agent(host.route(), children[0])
    assert run(child.ask("and you?")).kind == "completed"
    assert unanswered(host.log(children[0])) == {}
    assert unanswered(host.log(agent.session_id)) == {}


def test_c7_input_that_waits_in_the_parent_does_not_run_in_a_fork(host: Host) -> None:
    agent = host.agent(host.route())
    run(agent.ask("one"))
    run(agent.queue("for the parent"))
    run(agent.queue("and this", target="next-step"))
    child = host.agent(host.route(), host.sessions.fork(agent.session_id))

    result = run(child.ask("for the child"))

    assert result.text == "You said 'for the child'; I see 0 image(s)."
    assert "for the parent" not in str(list(host.sessions.load(child.session_id).messages()))
    assert run(agent.run_queued())[0].kind == "completed"


def test_a_conflict_is_planned_again_and_never_shown_to_the_user(host: Host) -> None:
    def lose(_append: object) -> None:
        with host.other() as theirs:
            theirs.append(session_id, "todo/write", {"todos": []})

    for at in range(1, 4):
        session_id = host.new_session()
        sessions = faulty(host.sessions, at, lose)

        result = run(host.agent(host.route(says("ok")), session_id, sessions=sessions).ask("hi"))

        assert result.text == "ok"
        assert len(host.data(result.session_id, "todo/write")) == 1


def test_nothing_is_dispatched_before_it_is_stored(host: Host, tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def look() -> str:
        with host.other() as theirs:
            seen.append([event.type for event in theirs.log(agent.session_id)][-2:])
        return "ok"

    def answer(_: object) -> Reply:
        with host.other() as theirs:
            seen.append([event.type for event in theirs.log(agent.session_id)][-2:])
        return calls(("c", "look", {})) if len(seen) == 1 else says("ok")

    agent = host.agent(host.route(answer, answer), tools=[look])

    run(agent.ask("go"))

    assert seen == [
        ["request/header", "request/context"],
        ["assistant/message", "tool/call"],
        ["step/end", "step/start"],
    ]


def test_hanging_up_in_the_middle_of_an_answer_is_a_crash_like_any_other(host: Host) -> None:
    agent = host.agent(host.route(hangs(TextDelta(0, "half"))))

    async def vanish() -> None:
        asking = asyncio.ensure_future(agent.ask("think"))
        while not host.data(agent.session_id, "request/context"):
            await asyncio.sleep(0)
        del asking

    # The loop is closed with the turn in the middle, as when a program ends.
    run(vanish())

    later = host.agent(host.route(says("ok")), agent.session_id, takes_over=True)
    assert run(later.ask("go on")).text == "ok"


def test_a_host_with_an_old_view_closes_the_turn_that_another_left_open(host: Host) -> None:
    session_id = host.new_session()
    host.sessions.resume(session_id)
    with host.other() as theirs:
        sessions = crashing(theirs, 3, is_stored=False)
        agent = host.agent(host.route(), session_id, sessions=sessions)
        with pytest.raises(CrashError):
            run(agent.ask("hello"))

    resumed = host.sessions.resume(session_id)

    assert not resumed.is_turn_open
