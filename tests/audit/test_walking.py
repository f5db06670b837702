"""The walk: what each event did, and how damage is named while the prefix is still shown (C8)."""

from collections.abc import Mapping

import orjson
import pytest

from everfold.audit.walking import Finding, Step, Walk
from everfold.host.plugins import registered
from everfold.host.sessions import Sessions
from everfold.plugins.plugin import Plugin
from everfold.projections.catalog import detached_composition
from everfold.session.composition import Composition
from everfold.session.errors import SessionNotFoundError
from everfold.session.events import EventLike, Recorded
from everfold.session.frozen import Json
from everfold.session.ids import version_of
from everfold.session.projection import History, MessageProjection
from tests.audit.damage import remove_row, rewrite_row
from tests.domain.kit import APPEND
from tests.domain.streams import spoken
from tests.talks import talk


def walked(sessions: Sessions, session_id: str = "quay") -> tuple[list[Step], list[Finding]]:
    walk = Walk(sessions.store, session_id, sessions.composition)
    steps = list(walk)
    return steps, walk.findings


def test_every_event_tells_what_it_did_to_the_surface(sessions: Sessions) -> None:
    talk(sessions)

    steps, findings = walked(sessions)

    assert [step.seq for step in steps] == list(range(14))
    effects = {step.seq: step.effect for step in steps if step.effect != "nothing"}
    assert effects == {
        2: "appended",
        3: "appended",
        6: "changed",
        8: "appended",
        10: "appended",
        11: "hid",
        12: "appended",
    }
    assert findings == []


def test_an_omission_tells_which_node_it_changed_and_by_which_plugin(sessions: Sessions) -> None:
    talk(sessions)

    steps, _findings = walked(sessions)

    assert (steps[6].seqs, steps[6].plugin) == ((3,), "image-offload")


def test_a_replacement_tells_which_nodes_it_hid(sessions: Sessions) -> None:
    talk(sessions)

    steps, _findings = walked(sessions)

    assert steps[11].seqs == (10,)


def test_the_walk_comes_to_the_surface_of_the_live_session(sessions: Sessions) -> None:
    talk(sessions)
    walk = Walk(sessions.store, "quay", sessions.composition)

    steps = list(walk)

    assert len(steps) == walk.event_count == 14
    assert list(walk.surface.nodes) == list(sessions.load("quay").nodes)
    assert walk.is_complete


def test_an_unknown_session_is_refused(sessions: Sessions) -> None:
    with pytest.raises(SessionNotFoundError, match="nowhere"):
        Walk(sessions.store, "nowhere", sessions.composition)


def test_a_missing_row_is_named_and_the_prefix_is_shown(sessions: Sessions, store_url: str) -> None:
    talk(sessions)
    remove_row(store_url, "quay", version_of(9))

    steps, findings = walked(sessions)

    assert [step.seq for step in steps] == list(range(9))
    assert [(each.session_id, each.seq, each.code) for each in findings] == [
        ("quay", 9, "store-corrupt")
    ]


def test_a_missing_last_row_is_named(sessions: Sessions, store_url: str) -> None:
    talk(sessions)
    walk = Walk(sessions.store, "quay", sessions.composition)
    remove_row(store_url, "quay", version_of(13))

    steps = list(walk)

    assert len(steps) == 13
    assert [(each.seq, each.code) for each in walk.findings] == [(13, "store-corrupt")]


@pytest.mark.parametrize("garbage", [b"\x00\xff\x00", b"{", b"[]", b"{}", b'{"data":1}', b""])
def test_an_undecodable_row_is_named_and_the_prefix_is_shown(
    sessions: Sessions, store_url: str, garbage: bytes
) -> None:
    talk(sessions)
    rewrite_row(store_url, "quay", version_of(4), garbage)

    steps, findings = walked(sessions)

    assert [step.seq for step in steps] == [0, 1, 2, 3]
    assert [(each.session_id, each.seq) for each in findings] == [("quay", 4)]


def test_bytes_that_would_be_written_otherwise_today_are_found(
    sessions: Sessions, store_url: str
) -> None:
    talk(sessions)
    row = sessions.store.read_versions("quay", (version_of(4),))[0]
    rewrite_row(store_url, "quay", version_of(4), row.state.replace(b'"reason":', b'"reason": '))

    steps, findings = walked(sessions)

    assert len(steps) == 14
    assert [(each.seq, each.code) for each in findings] == [(4, "bytes")]


def answered(sessions: Sessions) -> Recorded:
    """Store a session whose one event is an answer that came in pieces, and return that row."""
    sessions.create("quay")
    return sessions.append("quay", "assistant/message", spoken("a long ", "quay"), APPEND)


def test_an_answer_from_before_streams_were_shortened_is_sound(
    sessions: Sessions, store_url: str
) -> None:
    row = answered(sessions)
    rewrite_row(store_url, "quay", row.originator_version, orjson.dumps(row.envelope()))

    steps, findings = walked(sessions)

    assert (len(steps), findings) == (1, [])


def test_a_short_stream_that_cannot_be_put_together_is_found(
    sessions: Sessions, store_url: str
) -> None:
    row = answered(sessions)
    rewrite_row(store_url, "quay", row.originator_version, row.state.replace(b'")&"', b'")\'"'))

    steps, findings = walked(sessions)

    assert (len(steps), [(each.seq, each.code) for each in findings]) == (0, [(0, "store-corrupt")])
    assert "holds no 12 characters of text-chunks" in findings[0].message


def test_a_stored_message_that_is_none_is_found(sessions: Sessions, store_url: str) -> None:
    talk(sessions)
    row = sessions.store.read_versions("quay", (version_of(3),))[0]
    harmed = row.state.replace(b'"role":"user"', b'"role":"assistant"')
    rewrite_row(store_url, "quay", version_of(3), harmed)

    steps, findings = walked(sessions)

    assert len(steps) == 3
    assert [(each.seq, each.code) for each in findings] == [(3, "message-shape")]


@pytest.mark.parametrize("garbage", [b"\x00", b"{not json}", b"{}"])
def test_a_damaged_header_is_found_and_the_events_are_shown_all_the_same(
    sessions: Sessions, store_url: str, garbage: bytes
) -> None:
    talk(sessions)
    rewrite_row(store_url, "quay", 1, garbage)

    steps, findings = walked(sessions)

    assert len(steps) == 14
    assert [(each.session_id, each.seq) for each in findings] == [("quay", -1)]


def test_a_missing_header_is_found_and_the_events_are_shown_all_the_same(
    sessions: Sessions, store_url: str
) -> None:
    talk(sessions)
    remove_row(store_url, "quay", 1)

    steps, findings = walked(sessions)

    assert len(steps) == 14
    assert [(each.seq, each.code) for each in findings] == [(-1, "store-corrupt")]


def test_an_event_whose_interpreter_is_missing_is_found(sessions: Sessions) -> None:
    talk(sessions)
    walk = Walk(sessions.store, "quay", Composition())

    steps = list(walk)

    assert len(steps) == 6
    assert [(each.seq, each.code) for each in walk.findings] == [(6, "projection-missing")]


def test_an_interpreter_that_raises_is_named(sessions: Sessions) -> None:
    def fail(_event: EventLike, _history: History) -> Mapping[int, Json]:
        raise ZeroDivisionError("one over none")

    talk(sessions)
    broken = MessageProjection("image/offload", fail, plugin="broken")
    with registered([Plugin("broken", (broken,))]) as composition:
        walk = Walk(sessions.store, "quay", composition)
        steps = list(walk)

    assert len(steps) == 6
    assert [(each.seq, each.code) for each in walk.findings] == [(6, "projection-failed")]
    assert "ZeroDivisionError: one over none" in walk.findings[0].message
    assert "'broken'" in walk.findings[0].message


def test_a_session_without_events_is_whole(sessions: Sessions) -> None:
    sessions.create("empty")

    steps, findings = walked(sessions, "empty")

    assert (steps, findings) == ([], [])


def test_a_fork_is_walked_with_what_it_inherited(sessions: Sessions) -> None:
    talk(sessions)
    sessions.fork("quay", child_id="child")

    steps, findings = walked(sessions, "child")

    assert [step.effect for step in steps[:14]] == [s.effect for s in walked(sessions)[0]]
    assert (steps[14].type, findings) == ("session/end-seed", [])


def test_a_fork_whose_marker_is_gone_is_found(sessions: Sessions, store_url: str) -> None:
    talk(sessions)
    sessions.fork("quay", child_id="child")
    row = sessions.store.read_versions("child", (version_of(14),))[0]
    harmed = row.state.replace(b'{"inherited":true}', b"{}")
    rewrite_row(store_url, "child", version_of(14), harmed)

    _steps, findings = walked(sessions, "child")

    assert [(each.seq, each.code) for each in findings] == [(-1, "seed-cut")]


def test_the_detached_catalog_walks_as_the_host_does(sessions: Sessions) -> None:
    talk(sessions)
    walk = Walk(sessions.store, "quay", detached_composition())

    steps = list(walk)

    assert steps == walked(sessions)[0]
