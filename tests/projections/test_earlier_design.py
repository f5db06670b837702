"""Logs of the earlier design, image offload by surface replacement, read and continue (seed 3)."""

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from everfold.audit.auditing import audit
from everfold.host.access import HostedSession
from everfold.host.means import system_means
from everfold.host.sessions import Sessions
from everfold.interchange.exporting import export_session
from everfold.interchange.importing import import_session
from everfold.llm.budgets import ImageBudget
from everfold.llm.failure import FailureCode
from everfold.llm.images import images, is_omitted
from everfold.llm.route import Capabilities
from everfold.plugins.read_models import Reading
from everfold.projections.catalog import detached_composition
from everfold.projections.compaction.engine import Compacted
from everfold.projections.image_offload.decisions import bring_back, occurrences
from everfold.projections.image_offload.errors import OffloadIndexError
from everfold.projections.image_offload.recovery import omit_oldest
from everfold.projections.read_models.breakdown import CONTEXT_BREAKDOWN
from everfold.projections.read_models.images import IMAGES
from everfold.projections.read_models.pressure import CONTEXT_PRESSURE
from everfold.projections.token_meter.meter import Meter
from everfold.projections.token_meter.prices import image_price, message_price
from everfold.projections.tool_result_pruner.cutting import PruneLimits
from everfold.projections.tool_result_pruner.pruning import cuts, prune
from everfold.routes.scripted import echo, fails, says
from everfold.session.ports import SessionStore
from tests.compaction.kit import compact, comparing, run, summarising
from tests.compaction.mounting import agent, mounted
from tests.domain.kit import log, wishes_of
from tests.interchange.files import HEADER as FILE_HEADER
from tests.interchange.files import file_of, normal
from tests.projections.earlier import PICTURE, earlier_log, earlier_price
from tests.projections.kit import again, hosted, shown
from tests.projections.metering import hundred_each

LOG = earlier_log()
END = len(LOG) - 1
KEPT = [True, True, True, False, False, False]
"""The marks of the user's six images."""


@pytest.fixture
def access(store: SessionStore) -> Iterator[HostedSession]:
    """The log, imported from a file as its host left it."""
    sessions = Sessions(store, detached_composition())
    content = file_of(json.loads(json.dumps(LOG)), {**FILE_HEADER, "id": "s"})
    import_session([content], store, sessions.composition, system_means())
    with comparing([store]):
        yield HostedSession(sessions, "s")


def marks(access: HostedSession) -> list[list[bool]]:
    """Return, for each message with images, which of them are omitted."""
    found = [[is_omitted(i) for i in images(body["content"])] for _, body in shown(access)]
    return [each for each in found if each]


def test_the_surface_shows_the_marked_copies(access: HostedSession) -> None:
    session = access.view()

    assert list(session.nodes) == [0, 15, 5, 17, 19]
    assert (session.replace_generation, session.content_generation) == (3, 3)
    assert marks(access) == [KEPT, [True]]


def test_it_is_sound_and_comes_out_as_it_came_in(access: HostedSession, tmp_path: Path) -> None:
    out = BytesIO()

    export_session(access.sessions.store, "s", out)

    content = file_of(json.loads(json.dumps(LOG)), {**FILE_HEADER, "id": "s"})
    assert normal(out.getvalue()) == normal(content)
    assert audit(access.sessions, "s").is_sound


def test_live_appends_of_the_earlier_design_are_still_taken(store: SessionStore) -> None:
    access = hosted(store, LOG)

    assert marks(access) == [KEPT, [True]]


def test_resume_fork_and_restore_hold_the_marks(access: HostedSession) -> None:
    child = access.sessions.fork("s", child_id="child")
    later = again(access)
    later.sessions.resume("s")

    assert marks(later) == marks(HostedSession(access.sessions, child)) == [KEPT, [True]]
    at_first = access.sessions.load("s", at=12).messages()
    assert [is_omitted(i) for i in images(at_first[1]["content"])] == [True] * 2 + [False] * 4


def test_new_omissions_go_on_behind_the_marks_and_count_them(access: HostedSession) -> None:
    omit_oldest(access, 2)

    (event,) = access.sessions.log("s", first=END + 1)
    assert event.data == {"targets": [{"seq": 15, "imageIndexes": [3, 4]}]}
    assert marks(access) == [[True] * 5 + [False], [True]]


def test_when_all_are_marked_nothing_is_left_to_omit(access: HostedSession) -> None:
    omit_oldest(access, 3)

    assert omit_oldest(access, 1) is False


def test_a_mark_in_a_logged_copy_cannot_be_brought_back(access: HostedSession) -> None:
    with pytest.raises(OffloadIndexError, match="omitted in the stored message itself"):
        bring_back(access, {15: [0]})


def test_the_list_of_images_says_who_marked_them(access: HostedSession) -> None:
    found = occurrences(access.view(), access.sessions.log("s"))

    assert [(o.seq, o.index, o.state, o.decided_by) for o in found] == [
        *[(15, index, "omitted", 15) for index in range(3)],
        *[(15, index, "retained", None) for index in range(3, 6)],
        (17, 0, "omitted", 17),
    ]


def test_the_images_read_model_tells_copies_and_what_they_replaced(access: HostedSession) -> None:
    reading = Reading(IMAGES)

    reading.read(access.sessions.log("s"))

    rows = [(row["seq"], row["state"], row["isOmitted"], row["hiddenBy"]) for row in reading.view()]
    assert rows == [
        *[(3, "hidden", False, 12)] * 6,
        *[(12, "hidden", True, 15)] * 2,
        *[(12, "hidden", False, 15)] * 4,
        (7, "hidden", False, 17),
        *[(15, "omitted", True, None)] * 3,
        *[(15, "retained", False, None)] * 3,
        (17, "omitted", True, None),
    ]


def test_r309_the_running_total_follows_its_shadow_prices(access: HostedSession) -> None:
    meter = Meter()

    meter.read(access.sessions.log("s"))

    first, second, copy = (meter_price(seq) for seq in (12, 15, 17))
    appended = sum(meter_price(seq) for seq in (0, 3, 5, 7, 19))
    stated = [earlier_price(LOG[seq]["data"]) for seq in (3, 12, 7)]
    assert meter.state.total == appended - sum(stated) + first + second + copy


def meter_price(seq: int) -> int:
    """Return today's structural price of a record's message."""
    data = LOG[seq]["data"]
    return message_price(data.get("message", data))


def test_r301_today_a_copy_has_the_price_of_what_it_replaced(access: HostedSession) -> None:
    assert meter_price(3) == meter_price(12) == meter_price(15)
    assert meter_price(7) == meter_price(17)


def test_r304_a_marked_copy_is_priced_as_placeholders(access: HostedSession) -> None:
    meter = Meter()
    meter.read(access.sessions.log("s", last=18))

    difference = meter.estimate(hundred_each) - meter.estimate()

    assert difference == 4 * 7 + 3 * 100 - 7 * image_price(PICTURE)


def test_r307_its_usage_is_still_an_anchor(access: HostedSession) -> None:
    meter = Meter()

    meter.read(access.sessions.log("s"))

    assert meter.estimate() == 9005


def test_pressure_and_breakdown_read_it(access: HostedSession) -> None:
    pressure, breakdown = Reading(CONTEXT_PRESSURE), Reading(CONTEXT_BREAKDOWN)

    pressure.read(access.sessions.log("s"))
    breakdown.read(access.sessions.log("s"))

    assert pressure.view()["tokens"] == 9005
    facts = breakdown.view()
    assert (facts["imageCount"], facts["omittedImageCount"]) == (3, 4)
    assert facts["imageBytes"] == 3 * PICTURE["attachment"]["bytes"]


def test_r294_the_pruner_keeps_the_marks(access: HostedSession) -> None:
    limits = PruneLimits()

    prune(access, [cut.seq for cut in cuts(access.view(), limits)], limits)

    result = shown(access)[3][1]["content"][0]["content"]
    assert "characters of this tool result were removed" in result[0]["text"]
    assert result[1] == {**PICTURE, "offloaded": True}


def test_r285_a_summary_request_sees_the_marks(access: HostedSession) -> None:
    access.append(wishes_of(log(("user/message", {**LOG[3]["data"], "id": "v"}))))
    route = summarising()

    outcome = compact(access, route)

    assert isinstance(outcome, Compacted)
    assert outcome.hidden == (15, 5, 17, 19)
    assert [is_omitted(i) for i in images(route.requests[0].messages[1]["content"])] == KEPT
    (summary,) = access.sessions.log("s", first=outcome.seq - 1, last=outcome.seq - 1)
    assert summary.data["shadowedRange"] == {"start": 15, "end": 19}
    assert audit(access.sessions, "s").is_sound


def test_an_agent_goes_on_with_it_and_omits_by_events_from_now_on(access: HostedSession) -> None:
    takes = Capabilities(user_images=True, tool_images=True, budget=ImageBudget(max_images=2))
    route = summarising(says("fine"), takes=takes)
    route.otherwise = echo
    host = mounted(access.sessions, route)

    run(agent(host, "s").ask("and now?"))
    result = run(agent(host, "s").ask("and then?"))

    types = [event.type for event in access.sessions.log("s", first=END + 1)]
    assert types.count("image/offload") == 1
    assert types.count("compaction/prune") == 0
    assert result.text == "You said 'and then?'; I see 2 image(s)."
    assert marks(again(access)) == [[True] * 4 + [False] * 2, [True]]


def test_r272_recovery_goes_on_in_surface_order_after_the_copies(access: HostedSession) -> None:
    """The user's copy stands first, though its seq is greater than that of the call after it."""
    access.append(wishes_of(log(("user/message", {**LOG[3]["data"], "id": "v"}))))
    route = summarising(fails(FailureCode.IMAGE_OFFLOAD_REQUIRED, offload_images=4))
    host = mounted(access.sessions, route)

    compact(access, route, host.waterfalls)

    (event,) = [e for e in access.sessions.log("s", first=END) if e.type == "image/offload"]
    assert event.data == {"targets": [{"seq": 15, "imageIndexes": [3, 4, 5]}]}
