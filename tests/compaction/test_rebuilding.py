"""A request for a summary is rebuilt from the log alone, whatever became of it; here: what the log holds for that.

That each request which any of these tests sends equals its rebuilt self is checked by a fixture.
"""

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from everfold.agent.requests import rebuild_request
from everfold.host.access import HostedSession
from everfold.host.opening import open_sessions
from everfold.interchange.exporting import export_session
from everfold.interchange.importing import import_session
from everfold.llm.failure import FailureCode
from everfold.llm.images import images, is_omitted
from everfold.llm.route import Capabilities, LlmRequest
from everfold.plugins.waterfalls import Waterfalls
from everfold.projections.compaction.job import CompactionWish
from everfold.projections.compaction.settings import PROMPT
from everfold.projections.image_offload.recovery import recover_summary
from everfold.routes.scripted import fails, says
from everfold.session.events import Recorded
from everfold.session.ports import SessionStore
from everfold.store.urls import open_store
from tests.compaction.kit import (
    SUMMARY,
    TOOLS,
    StrictRoute,
    call,
    compact,
    compacted,
    compactor,
    prompted,
    run,
    turn,
)
from tests.domain.kit import (
    assistant,
    image,
    log,
    replace,
    system,
    text,
    tool_result,
    user,
    wishes_of,
)
from tests.processes import Worker
from tests.projections.kit import again, hosted

RouteMaker = Callable[..., StrictRoute]
TALK = log(*prompted(), *turn(1), *turn(2), *turn(3))
LONG = log(*prompted(tools=True), *(row for n in range(40) for row in turn(n + 1, size=3800)))
NEEDS_ONE = fails(FailureCode.IMAGE_OFFLOAD_REQUIRED, "too many", offload_images=1)


def asked(access: HostedSession) -> list[Recorded]:
    """Return the events that tell of requests for summaries."""
    return [event for event in access.sessions.log("s") if event.type == "compaction/request"]


def rebuilt(access: HostedSession) -> list[LlmRequest]:
    """Return the requests for summaries that the log gives a host with nothing in memory."""
    reader = again(access).sessions
    return [rebuild_request(reader, access.session_id, event.seq) for event in asked(access)]


def test_the_event_holds_what_the_log_does_not_say_otherwise(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, TALK)

    outcome = compacted(access, a_route(), command_id="cmd-1", focus="the boat")

    (event,) = asked(access)
    assert event.ignorable
    assert event.data == {
        "compactionId": outcome.compaction_id,
        "sourceCommandId": "cmd-1",
        "pass": 1,
        "config": {"provider": "scripted", "model": "m", "maxTokens": 8192},
        "withPrompt": True,
        "withTools": False,
        "range": {"start": 3, "end": 8},
        "instruction": f"{PROMPT}\n\nDwell on this: the boat",
    }


def test_each_pass_is_told_of_with_what_it_carries(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, route = hosted(store, LONG), a_route(says("one"), says("two"), window=32_000)

    outcome = compacted(access, route)

    data = [event.data for event in asked(access)]
    assert [each["pass"] for each in data] == [1, 2, 3]
    assert [each.get("carried") for each in data] == [None, [text("one")], [text("two")]]
    nodes = [seq for each in data for seq in (each["range"]["start"], each["range"]["end"])]
    places = [outcome.hidden.index(seq) for seq in nodes]
    assert places == [0, places[1], places[1] + 1, places[3], places[3] + 1, places[-1]]
    assert places[-1] == len(outcome.hidden) - 1
    assert rebuilt(access) == route.requests


def test_an_omission_inside_the_span_is_told_of_by_a_request_of_its_own(
    store: SessionStore, a_route: RouteMaker
) -> None:
    pictures = log(*prompted(), *turn(1, images=[image(1), image(2)]), *turn(2), *turn(3))
    access, route, chains = hosted(store, pictures), a_route(NEEDS_ONE, NEEDS_ONE), Waterfalls()
    chains.summary_error.register("image-offload", recover_summary)

    compact(access, route, chains)

    assert [event.data["pass"] for event in asked(access)] == [1, 1, 1]
    assert rebuilt(access) == route.requests
    shown = [images(request.messages[1]["content"]) for request in rebuilt(access)]
    assert [sum(map(is_omitted, each)) for each in shown] == [0, 1, 2]


def test_passes_that_are_halved_after_an_overflow_begin_anew(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, route = hosted(store, LONG), a_route(takes=StrictRoute().takes)
    route.window = 50_000

    compacted(access, route)

    passes = [event.data["pass"] for event in asked(access)]
    assert (route.refused, passes) == (1, [1, 1, 2, 3])
    assert rebuilt(access) == route.requests


def test_an_overflow_amid_the_passes_begins_anew_without_what_was_carried(
    store: SessionStore, a_route: RouteMaker
) -> None:
    too_long = fails(FailureCode.CONTEXT_WINDOW_EXCEEDED)
    access, route = hosted(store, LONG), a_route(says("one"), too_long, window=32_000)

    compacted(access, route)

    data = [event.data for event in asked(access)]
    assert [each["pass"] for each in data][:4] == [1, 2, 1, 2]
    assert "carried" not in data[2]
    assert data[3]["carried"] == [text(SUMMARY)]
    assert rebuilt(access) == route.requests


@pytest.mark.parametrize("letter", ["b", "é", "\U0001f6a2"], ids=["ascii", "two bytes", "ship"])
def test_a_message_that_fits_no_pass_is_cut_again_at_the_same_places(
    store: SessionStore, a_route: RouteMaker, letter: str
) -> None:
    rows = [
        ("user/message", user("u", text("read it"))),
        ("assistant/message", assistant("a", call("c"))),
        ("tool/result", tool_result("c", text(letter * 300_000 + "e"), image(1))),
    ]
    access = hosted(store, log(*prompted(tools=True), *rows, *turn(2)))
    route = a_route(window=16_000)

    compacted(access, route)

    first, second = (event.data for event in asked(access))
    assert "shortened" not in first
    assert 0 < second["shortened"] < 30_000
    assert rebuilt(access) == route.requests
    (given,) = rebuilt(access)[1].messages[2]["content"]
    assert given["text"].startswith("[assistant:]\n[Called tool read with")
    assert given["text"].endswith(f"{letter}e\n[image]")


def test_a_message_that_only_becomes_one_text_is_kept_whole(
    store: SessionStore, a_route: RouteMaker
) -> None:
    """Its pictures cost more than a pass may, and are named."""
    pictures = [image(number) for number in range(200)]
    access = hosted(store, log(*prompted(), *turn(1, images=pictures), *turn(2), *turn(3)))
    route = a_route(takes=Capabilities(user_images=True, context_window=8000))

    compacted(access, route)

    data, request = asked(access)[0].data, rebuilt(access)[0]
    (given,) = request.messages[1]["content"]
    assert data["shortened"] == len(given["text"])
    assert given["text"].count("[image]") == 200
    assert "left out" not in given["text"]


def test_prompt_and_tools_that_fill_the_window_are_told_to_be_left_out(
    store: SessionStore, a_route: RouteMaker
) -> None:
    long = ("system/message", system("s", text("p" * 40_000)))
    rows = log(long, *prompted(tools=True)[1:], *turn(1, tools=1), *turn(2))
    access, route = hosted(store, rows), a_route(window=12_000)

    compacted(access, route)

    (event,) = asked(access)
    assert (event.data["withPrompt"], event.data["withTools"]) == (False, False)
    (request,) = rebuilt(access)
    assert "tools" not in request.header
    assert request.messages[0]["id"] == "u-1"


def test_tools_are_those_of_the_log(store: SessionStore, a_route: RouteMaker) -> None:
    access = hosted(store, log(*prompted(tools=True), *turn(1, tools=2), *turn(2)))

    compacted(access, a_route())

    (event,) = asked(access)
    assert event.data["withTools"] is True
    assert str(TOOLS[0]["description"]) not in str(event.data)
    assert rebuilt(access)[0].header["tools"] == TOOLS


@pytest.mark.parametrize("takes_it", [False, True])
def test_pictures_that_are_only_named_are_told_of(
    store: SessionStore, a_route: RouteMaker, takes_it: bool
) -> None:
    drawn = [("assistant/message", assistant("drawn", text("here"), image(7)))]
    access = hosted(store, log(*prompted(), *turn(1, size=4000), *drawn, *turn(2), *turn(3)))
    route = a_route(takes=Capabilities(user_images=True, assistant_images=takes_it))

    compacted(access, route)

    (event,) = asked(access)
    assert event.data.get("picturesNamed") is (None if takes_it else True)
    assert rebuilt(access) == route.requests


def test_a_range_whose_start_is_the_greater_seq_is_read_by_position(
    store: SessionStore, a_route: RouteMaker
) -> None:
    rows = log(
        *prompted(),
        *(("user/message", user(id_, text("q" * 900))) for id_ in ("u", "v")),
        ("user/message", user("w", text("new"))),
        ("user/message", user("x", text("y" * 900)), replace(2, 2)),
    )
    access = hosted(store, rows)

    compacted(access, a_route())

    assert asked(access)[0].data["range"] == {"start": 5, "end": 3}
    assert [m["id"] for m in rebuilt(access)[0].messages[1:-1]] == ["x", "v"]


def test_what_is_given_to_dwell_on_is_made_valid_before_it_is_sent(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, route = hosted(store, TALK), a_route()

    compacted(access, route, focus="half \ud83d")

    assert asked(access)[0].data["instruction"].endswith("Dwell on this: half \ufffd")
    assert rebuilt(access) == route.requests


def test_requests_are_rebuilt_at_their_own_time_not_at_the_present(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, route = hosted(store, LONG), a_route(window=32_000)

    for number in (100, 200, 300):
        compacted(access, route)
        access.append(wishes_of(log(*turn(number, size=9000), *turn(number + 1))))

    assert len(route.requests) > 4
    assert rebuilt(access) == route.requests


# Elsewhere.


def test_a_fork_between_two_passes_gives_the_same_request_under_its_own_id(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access, forks = hosted(store, LONG), list[tuple[str, int]]()

    def forked(_request: LlmRequest) -> Any:
        forks.append((access.sessions.fork("s"), asked(access)[-1].seq))
        return says(f"part {len(forks)}")

    route = a_route(forked, forked, forked, window=32_000)
    compacted(access, route)

    for (fork, seq), sent in zip(forks, route.requests, strict=True):
        request = rebuild_request(again(access).sessions, fork, seq)
        assert request.session_id == fork
        assert (request.header, request.messages) == (sent.header, sent.messages)


def test_a_session_goes_on_in_a_fork_that_was_made_between_two_passes(
    store: SessionStore, a_route: RouteMaker
) -> None:
    access = hosted(store, LONG)
    forks: list[str] = []

    def forked(_request: LlmRequest) -> Any:
        forks.append(access.sessions.fork("s"))
        return says(SUMMARY)

    compacted(access, a_route(forked, window=32_000))

    fork, route = HostedSession(access.sessions, forks[0]), a_route(window=32_000)
    assert compacted(fork, route).passes == len(route.requests)


def test_a_file_carries_them_to_another_store(store: SessionStore, a_route: RouteMaker) -> None:
    access, route, out = hosted(store, LONG), a_route(window=32_000), BytesIO()
    compacted(access, route)
    seqs = [event.seq for event in asked(access)]

    export_session(store, "s", out)

    with open_store("sqlite://") as other:
        sessions = again(access).sessions
        import_session([out.getvalue()], other, sessions.composition, sessions.means)
        moved = hosted(other, [], "unused").sessions
        assert [rebuild_request(moved, "s", seq) for seq in seqs] == route.requests
        kept = [event.record() for event in moved.log("s")]
    assert kept == [event.record() for event in access.sessions.log("s")]


def read_elsewhere(url: str, seqs: list[int]) -> list[tuple[Any, Any]]:
    """Return what a host with other plugins and no settings makes of a log."""
    with open_sessions(url, plugins=[], read_only=True) as sessions:
        found = [rebuild_request(sessions, "s", seq) for seq in seqs]
    return [(dict(each.header), [dict(message) for message in each.messages]) for each in found]


def test_another_process_that_knows_no_setting_and_no_plugin_gives_the_same(
    sqlite_url: str, store: SessionStore, a_route: RouteMaker
) -> None:
    access, route = hosted(store, LONG), a_route(window=32_000)
    engine = compactor(route, prompt="Sum up in verse.", max_summary_tokens=900, keep_tokens=3000)
    run(engine.compact(access, CompactionWish(focus="boats")))

    found = Worker(read_elsewhere, sqlite_url, [event.seq for event in asked(access)]).result()

    assert len(found) > 1
    assert found == [(each.header, list(each.messages)) for each in route.requests]


# For ever.

GOLDEN = Path(__file__).parent.parent / "golden" / "summary-requests.jsonl"
"""A log, and the requests for summaries that were sent when it was written; never written again."""


def test_requests_of_a_golden_log_are_rebuilt_as_they_were_sent(store: SessionStore) -> None:
    """With half pairs of tools, pictures that are named, and without tools a text that is cut."""
    lines = [json.loads(line) for line in GOLDEN.read_text("utf-8").splitlines()]
    access = hosted(store, [line["event"] for line in lines if "event" in line], "golden")

    sent = [line for line in lines if "event" not in line]

    assert len(sent) == 4
    for line in sent:
        request = rebuild_request(access.sessions, "golden", line["seq"])
        assert request.header == line["header"]
        assert list(request.messages) == line["messages"]
        assert request.access_path == line["accessPath"]
