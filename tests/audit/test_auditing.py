"""The audit: every view against the stored events, the first difference with its seq."""

import zlib
from dataclasses import dataclass, replace
from types import MappingProxyType

import orjson
import pytest

from everfold.audit.auditing import MissingImage, audit, first_difference
from everfold.audit.walking import Step
from everfold.host.sessions import Sessions
from everfold.session.errors import SessionNotFoundError
from everfold.session.growing import Growing
from everfold.session.ids import version_of
from everfold.session.surface import Surface
from tests.audit.damage import remove_row
from tests.talks import IMAGE, talk, text, user


def surface_of(sessions: Sessions) -> Surface:
    return sessions.load(talk(sessions)).state.surface


def test_a_whole_session_is_sound_in_every_view(sessions: Sessions) -> None:
    talk(sessions)

    report = audit(sessions, "quay")

    assert report.is_sound
    assert [view.name for view in report.views] == ["live", "restored", "detached"]
    assert (report.event_count, report.stored_count, report.node_count) == (14, 14, 5)
    assert report.effects == {"nothing": 7, "appended": 5, "changed": 1, "hid": 1}
    assert (report.replace_generation, report.content_generation) == (1, 2)


def test_steps_are_told_while_they_are_walked(sessions: Sessions) -> None:
    talk(sessions)
    told: list[Step] = []

    audit(sessions, "quay", on_step=told.append)

    assert [step.seq for step in told] == list(range(14))


def test_an_empty_session_is_sound(sessions: Sessions) -> None:
    sessions.create("empty")

    report = audit(sessions, "empty")

    assert report.is_sound
    assert [view.name for view in report.views] == ["live", "detached"]


def test_forks_are_sound(sessions: Sessions) -> None:
    talk(sessions)
    sessions.fork("quay", child_id="child")
    sessions.fork("child", child_id="grandchild")

    reports = [audit(sessions, each) for each in ("child", "grandchild")]

    assert [report.is_sound for report in reports] == [True, True]


def test_an_unknown_session_is_refused(sessions: Sessions) -> None:
    with pytest.raises(SessionNotFoundError):
        audit(sessions, "nowhere")


def test_a_damaged_session_is_not_sound_and_no_view_is_compared(
    sessions: Sessions, store_url: str
) -> None:
    talk(sessions)
    remove_row(store_url, "quay", version_of(5))

    report = audit(sessions, "quay")

    assert not report.is_sound
    assert (report.event_count, report.stored_count, report.views) == (5, 14, ())
    assert [finding.seq for finding in report.findings] == [5]


def test_a_lying_snapshot_is_found_with_the_first_seq_that_differs(sessions: Sessions) -> None:
    talk(sessions)
    sessions.snapshot("quay")
    snapshot = sessions.store.load_snapshot("quay")
    assert snapshot is not None
    body = orjson.loads(zlib.decompress(snapshot.state))
    body["nodes"] = [node for node in body["nodes"] if node != 8]
    lie = replace(snapshot, state=zlib.compress(orjson.dumps(body)))
    sessions.store.save_snapshot(lie)
    fresh = Sessions(sessions.store, sessions.composition)

    report = audit(fresh, "quay")

    assert not report.is_sound
    found = {view.name: view.difference and view.difference.seq for view in report.views}
    assert found == {"live": 8, "restored": 8, "detached": None}


def test_events_that_come_during_an_audit_do_not_make_it_unsound(sessions: Sessions) -> None:
    talk(sessions)

    def append_meanwhile(step: Step) -> None:
        if step.seq == 3:
            sessions.append_batch("quay", (user("u-2", text("one more")),))

    report = audit(sessions, "quay", on_step=append_meanwhile)

    assert report.is_sound
    assert report.event_count == 14


def test_equal_surfaces_do_not_differ(sessions: Sessions) -> None:
    surface = surface_of(sessions)

    difference = first_difference(surface, sessions.load("quay", at=13).state.surface)

    assert difference is None


def test_a_missing_node_is_the_first_difference(sessions: Sessions) -> None:
    surface = surface_of(sessions)
    other = replace(surface, nodes=Growing.adopt([2, 3, 8]))

    difference = first_difference(surface, other)

    assert difference is not None
    assert (difference.seq, "fewer" in difference.reason) == (11, True)


def test_another_node_is_the_first_difference(sessions: Sessions) -> None:
    surface = surface_of(sessions)
    other = replace(surface, nodes=Growing.adopt([2, 3, 10, 11, 12]))

    difference = first_difference(surface, other)

    assert difference is not None
    assert (difference.seq, difference.reason) == (8, "the view has node 10 where 8 stands")


def test_another_message_is_the_first_difference(sessions: Sessions) -> None:
    surface = surface_of(sessions)
    other = replace(surface, messages=MappingProxyType({}))

    difference = first_difference(surface, other)

    assert difference is not None
    assert difference.seq == 3


def test_another_generation_is_a_difference(sessions: Sessions) -> None:
    surface = surface_of(sessions)
    other = replace(surface, content_generation=7)

    difference = first_difference(surface, other)

    assert difference is not None
    assert difference.reason == "the view's content generation is 7, not 2"


@dataclass
class Held:
    """A stand-in for a store of attachments: it has these."""

    ids: set[str]

    def has(self, attachment_id: str) -> bool:
        return attachment_id in self.ids


def test_a_shown_image_without_bytes_is_told_and_the_log_is_sound(sessions: Sessions) -> None:
    sessions.create("pictures")
    elsewhere = {"type": "image", "attachment": {"attachmentId": "https://elsewhere"}}
    blocks = (text("look"), IMAGE, {"type": "image"}, elsewhere)
    sessions.append_batch("pictures", (user("u", *blocks),))

    report = audit(sessions, "pictures", attachments=Held(set()))

    assert report.missing == (MissingImage(0, 0, IMAGE["attachment"]["attachmentId"]),)
    assert report.is_sound


def test_an_image_that_is_held_or_omitted_is_not_missing(sessions: Sessions) -> None:
    talk(sessions)
    sessions.append_batch("quay", (user("u-2", IMAGE),))
    held = Held({IMAGE["attachment"]["attachmentId"]})

    assert audit(sessions, "quay", attachments=held).missing == ()
    assert [each.seq for each in audit(sessions, "quay", attachments=Held(set())).missing] == [14]
