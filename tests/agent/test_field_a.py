"""Field reports, group A, as far as the loop decides them: no image makes a session unusable."""

from everfold.llm.budgets import ImageBudget
from everfold.llm.failure import FailureCode
from everfold.llm.route import Capabilities, LlmRequest
from everfold.routes.scripted import Reply, echo, fails
from tests.agent.kit import Host, png, run, shown

LARGEST = 5_242_880


def images_of(request: LlmRequest) -> list[int]:
    """Return the bytes of the images that a request shows."""
    return [
        block["attachment"]["bytes"]
        for message in request.messages
        for block in message["content"]
        if block["type"] == "image" and not block.get("offloaded")
    ]


def refuses_large(request: LlmRequest) -> Reply:
    """Answer like a provider with a limit for one picture."""
    large = [size for size in images_of(request) if size > LARGEST]
    if large:
        return fails(FailureCode.IMAGE_OFFLOAD_REQUIRED, "image too large", offload_images=1)
    return echo(request)


def test_a1_an_oversized_picture_does_not_stay_in_the_way(host: Host) -> None:
    route = host.route(otherwise=refuses_large)
    agent = host.agent(route)

    first = run(agent.ask(["look", png(1, 5_600_000)]))
    with host.other() as theirs:
        later = host.agent(route, agent.session_id, takes_over=True, sessions=theirs)
        second = run(later.ask("thanks"))

    assert (first.kind, second.kind, len(route.sent)) == ("completed", "completed", 3)
    assert host.data(agent.session_id, "image/offload") == [
        {"targets": [{"seq": 3, "imageIndexes": [0]}]}
    ]


def test_a2_more_than_a_hundred_images_go_on_and_the_newest_survives(host: Host) -> None:
    budget = ImageBudget(max_images=100, count_quantum=20)
    route = host.route(takes=Capabilities(user_images=True, budget=budget))
    agent = host.agent(route)

    results = [run(agent.ask([png(number, 5_000)])) for number in range(102)]

    assert {result.kind for result in results} == {"completed"}
    assert max(len(images_of(prepared.extra["request"])) for prepared in route.sent) == 100
    assert shown(route)[-1] == "user: [image 101]"
    assert len(host.data(agent.session_id, "image/offload")) == 1


def test_a5_a_byte_limit_is_recovered_whatever_the_tokens_say(host: Host) -> None:
    budget = ImageBudget("base64", max_bytes=32_000_000, byte_quantum=8_000_000)
    takes = Capabilities(user_images=True, context_window=1_000_000, budget=budget)
    agent = host.agent(host.route(takes=takes))

    results = [run(agent.ask([png(number, 610_000)])) for number in range(42)]

    assert {result.kind for result in results} == {"completed"}


def test_a6_one_request_that_stays_refused_is_sent_once_a_message(host: Host) -> None:
    route = host.route(otherwise=fails("INVALID_REQUEST", "no"))
    agent = host.agent(route)

    run(agent.ask([png(1)]))
    run(agent.ask("still there?"))

    assert len(route.sent) == 2
    assert route.sent[0].body != route.sent[1].body


def test_s5_an_omission_loses_no_text(host: Host) -> None:
    agent = host.agent(host.route(fails("IMAGE_OFFLOAD_REQUIRED", offload_images=2)))

    run(agent.ask(["before", png(1), "between", png(2), "after"]))

    message = list(host.sessions.load(agent.session_id).messages())[1]
    texts = [block["text"] for block in message["content"] if block["type"] == "text"]
    assert texts == ["before", "between", "after"]


def test_s1_a_recovery_changes_no_stored_event(host: Host) -> None:
    agent = host.agent(host.route())
    run(agent.ask([png(1)]))
    before = [event.state for event in host.log(agent.session_id)]
    later = host.agent(
        host.route(fails("IMAGE_OFFLOAD_REQUIRED", offload_images=1)), agent.session_id
    )

    run(later.ask("go on"))

    assert [event.state for event in host.log(agent.session_id)][: len(before)] == before
