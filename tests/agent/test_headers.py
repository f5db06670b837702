"""Request header, context, series and system prompt (group N)."""

from dataclasses import replace
from typing import Any

from everfold.agent.settings import ModelSettings
from everfold.llm.route import Capabilities
from everfold.plugins.waterfalls import PreStepAnswer
from everfold.projections.image_offload.decisions import omit
from everfold.routes.scripted import calls, fails, says
from everfold.session.deciding import replacement
from tests.agent.kit import MODEL, Host, png, run, shown

IN_HISTORY = Capabilities(user_images=True, system_prompt_update="in-history")


def noop() -> str:
    """Do nothing."""
    return "done"


def reasons(host: Host, session_id: str) -> list[str]:
    return [data["reason"] for data in host.data(session_id, "request/header")]


def test_r193_the_first_request_writes_initial(host: Host) -> None:
    agent = host.agent(host.route())

    run(agent.ask("hi"))

    assert host.data(agent.session_id, "request/header") == [
        {
            "header": {"config": {"provider": "scripted", "model": "model-1"}},
            "reason": "initial",
        }
    ]


def test_r193_a_new_loop_instance_writes_resume(host: Host) -> None:
    agent = host.agent(host.route())
    run(agent.ask("hi"))

    run(host.agent(host.route(), agent.session_id).ask("again"))

    assert reasons(host, agent.session_id) == ["initial", "resume"]


def test_r194_a_changed_header_writes_change(host: Host) -> None:
    agent = host.agent(host.route())
    run(agent.ask("hi"))

    agent.use(model=replace(MODEL, temperature=0.5))
    run(agent.ask("again"))

    last = host.data(agent.session_id, "request/header")[-1]
    assert (last["reason"], "startsSeries" in last) == ("change", False)
    assert last["header"]["config"]["temperature"] == 0.5


def test_r194_a_change_with_a_new_series_says_so(host: Host) -> None:
    agent = host.agent(host.route())
    run(agent.ask(["look", png(1)]))
    omit(host.access(agent.session_id), {3: [0]})

    agent.use(model=replace(MODEL, temperature=0.5))
    run(agent.ask("again"))

    last = host.data(agent.session_id, "request/header")[-1]
    assert (last["reason"], last.get("startsSeries")) == ("change", True)


def test_r195_an_omission_between_requests_writes_series(host: Host) -> None:
    agent = host.agent(host.route())
    run(agent.ask(["look", png(1)]))
    omit(host.access(agent.session_id), {3: [0]})

    run(agent.ask("again"))

    assert reasons(host, agent.session_id) == ["initial", "series"]


def test_r195_a_replacement_between_requests_writes_series(host: Host) -> None:
    agent = host.agent(host.route())
    run(agent.ask("long story"))
    short = {**host.data(agent.session_id, "user/message")[0], "id": "short"}
    host.access(agent.session_id).append(
        [replacement("user/message", short, start=3, end=3, sources=[3])]
    )

    run(agent.ask("again"))

    assert reasons(host, agent.session_id) == ["initial", "series"]


def test_r196_the_same_header_in_the_same_series_writes_nothing(host: Host) -> None:
    route = host.route(calls(("c", "noop", {})), says("a"), says("b"))
    agent = host.agent(route, tools=[noop])

    run(agent.ask("one"))
    run(agent.ask("two"))

    assert (len(route.sent), reasons(host, agent.session_id)) == (3, ["initial"])


def test_r197_a_plugin_may_start_a_series_before_a_step(host: Host) -> None:
    kinds = []

    async def before(question: Any, ask_next: Any) -> PreStepAnswer:
        kinds.append(question.kind)
        return PreStepAnswer(starts_series=True)

    host.mounted.waterfalls.pre_step.register("starter", before)
    agent = host.agent(host.route(says("a"), fails("SERVER"), says("b")))

    run(agent.ask("one"))
    run(agent.ask("two"))

    assert kinds == ["first", "first", "retry"]
    assert reasons(host, agent.session_id) == ["initial", "series"]


def test_r198_omissions_in_a_resumed_log_start_no_series(host: Host) -> None:
    agent = host.agent(host.route())
    run(agent.ask(["look", png(1)]))
    omit(host.access(agent.session_id), {3: [0]})
    later = host.agent(host.route(), agent.session_id)

    run(later.ask("one"))
    run(later.ask("two"))

    assert reasons(host, agent.session_id) == ["initial", "resume"]


def test_r199_a_context_is_written_only_when_it_changed(host: Host) -> None:
    route = host.route(takes=Capabilities(context_window=8000))
    agent = host.agent(route)
    run(agent.ask("one"))
    run(agent.ask("two"))

    route.takes = replace(route.takes, context_window=9000)
    run(agent.ask("three"))

    contexts = host.data(agent.session_id, "request/context")
    assert [context["contextWindow"] for context in contexts] == [8000, 9000]
    assert reasons(host, agent.session_id) == ["initial"]


def test_r200_the_prompt_is_the_first_node_even_when_empty(host: Host) -> None:
    route = host.route()
    agent = host.agent(route, prompt="")

    run(agent.ask("hi"))

    session = host.sessions.load(agent.session_id)
    head = session.event(session.nodes[0])
    assert head is not None
    assert (head.type, head.data["message"]["content"]) == ("system/message", [])
    assert shown(route) == ["user: hi"]


def test_r200_a_new_prompt_is_appended_where_the_route_reads_it_there(host: Host) -> None:
    route = host.route(takes=IN_HISTORY)
    agent = host.agent(route)
    run(agent.ask("one"))

    agent.use(system_prompt="be rude")
    run(agent.ask("two"))
    run(agent.ask("three"))

    assert [line for line in shown(route) if not line.startswith("assistant")] == [
        "system: be brief",
        "user: one",
        "user: two",
        "system: be rude",
        "user: three",
    ]
    assert reasons(host, agent.session_id) == ["initial"]


def test_r200_elsewhere_the_head_is_rewritten_and_starts_a_series(host: Host) -> None:
    route = host.route()
    agent = host.agent(route)
    run(agent.ask("one"))

    agent.use(system_prompt="be rude")
    run(agent.ask("two"))
    run(agent.ask("three"))

    assert shown(route)[0] == "system: be rude"
    assert reasons(host, agent.session_id) == ["initial", "series"]


def test_r200_a_route_that_reads_the_head_alone_empties_later_prompts(host: Host) -> None:
    reads, deaf = host.route(takes=IN_HISTORY), host.route(provider="deaf")
    agent = host.agent([reads, deaf])
    run(agent.ask("one"))
    agent.use(system_prompt="be rude")
    run(agent.ask("two"))

    agent.use(model=ModelSettings("deaf", "model-2"))
    run(agent.ask("three"))

    assert [line for line in shown(deaf) if line.startswith("system")] == ["system: be rude"]
    assert shown(deaf)[0] == "system: be rude"
    assert host.data(agent.session_id, "request/header")[-1]["startsSeries"] is True


def test_c10_a_decision_of_another_process_is_seen_by_the_next_request(host: Host) -> None:
    route = host.route()
    agent = host.agent(route)
    run(agent.ask(["look", png(1)]))
    with host.other() as theirs:
        omit(type(host.access(""))(theirs, agent.session_id), {3: [0]})

    run(agent.ask("again"))

    assert "user: [omitted 1]" in shown(route)
