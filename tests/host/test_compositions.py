"""Snapshots, changed compositions and unknown types, as a host meets them."""

import zlib

import pytest

from everfold.host.sessions import Sessions
from everfold.projections.catalog import detached_composition
from everfold.projections.image_offload.projection import IMAGE_OFFLOAD
from everfold.session.composition import Composition
from everfold.session.errors import (
    BoundaryError,
    ProjectionChangedError,
    ProjectionMissingError,
    UnknownEventError,
)
from everfold.session.ports import SessionStore
from everfold.session.snapshot import take_snapshot
from tests.domain.kit import view
from tests.host.kit import another, hello, pictures, turn


def test_an_unknown_required_type_is_refused_when_it_is_written(sessions: Sessions) -> None:
    """K1, V4."""
    sessions.create("s")

    with pytest.raises(UnknownEventError, match="'acme/note'"):
        sessions.append("s", "acme/note", {"text": "x"})


def test_an_unknown_ignorable_type_is_kept(store: SessionStore, sessions: Sessions) -> None:
    """K1."""
    sessions.create("s")

    sessions.append("s", "acme/note", {"text": "x"}, {"ignorable": True})

    event = next(iter(another(store).log("s")))
    assert event.record()["ignorable"] is True
    assert another(store).load("s").next_seq == 1


def test_a_host_without_the_interpreter_refuses_the_session(
    store: SessionStore, sessions: Sessions
) -> None:
    """R101, R226."""
    sessions.create("s")
    sessions.append_batch("s", [pictures("u", 1)])
    sessions.append("s", "image/offload", {"targets": [{"seq": 0, "imageIndexes": [0]}]})

    with pytest.raises(ProjectionMissingError, match="image/offload"):
        Sessions(store, Composition()).load("s")


def test_a_removed_interpreter_stops_a_session_until_it_is_back(store: SessionStore) -> None:
    """R114 to R116."""
    composition = Composition()
    dispose = composition.register(IMAGE_OFFLOAD)
    host = Sessions(store, composition)
    host.create("s")
    host.append_batch("s", [pictures("u", 1)])
    host.append("s", "image/offload", {"targets": [{"seq": 0, "imageIndexes": [0]}]})
    session = host.load("s")
    dispose()

    with pytest.raises(ProjectionChangedError):
        session.messages()
    with pytest.raises(ProjectionChangedError):
        host.append("s", "todo/write", {"todos": []})
    composition.register(IMAGE_OFFLOAD)

    assert len(session.messages()) == 1
    assert host.append("s", "todo/write", {"todos": []}).seq == 2


def test_a_snapshot_of_another_composition_is_not_used(
    store: SessionStore, sessions: Sessions
) -> None:
    sessions.create("s")
    sessions.append_batch("s", [pictures("u", 2)])
    sessions.append("s", "image/offload", {"targets": [{"seq": 0, "imageIndexes": [0]}]})
    lying = take_snapshot("s", sessions.load("s").state, Composition())
    store.save_snapshot(lying)

    loaded = another(store).load("s")

    assert view(loaded) == view(sessions.load("s"))


def test_a_damaged_snapshot_is_not_used(store: SessionStore, sessions: Sessions) -> None:
    sessions.create("s")
    sessions.append_batch("s", turn(1))
    good = take_snapshot("s", sessions.load("s").state, sessions.composition)
    store.save_snapshot(type(good)(good.stream_id, good.version, good.topic, b"\x00rubbish"))

    loaded = another(store).load("s")

    assert view(loaded) == view(sessions.load("s"))


def test_snapshots_are_stored_by_interval(store: SessionStore) -> None:
    host = Sessions(store, detached_composition(), snapshot_every=10)
    host.create("s")
    for number in range(4):
        host.append_batch("s", turn(number + 1))

    snapshot = store.load_snapshot("s")

    assert snapshot is not None
    assert snapshot.version == 13


def test_as_of_a_seq_beyond_the_log_is_refused(sessions: Sessions) -> None:
    sessions.create("s")
    sessions.append_batch("s", [hello()])

    with pytest.raises(BoundaryError, match=r"boundary 1 is not a whole number in 0\.\.0"):
        sessions.load("s", at=1)


def test_a_snapshot_that_lacks_fields_is_not_used(store: SessionStore, sessions: Sessions) -> None:
    sessions.create("s")
    sessions.append_batch("s", turn(1))
    good = take_snapshot("s", sessions.load("s").state, sessions.composition)
    body = zlib.compress(b'{"nextSeq":3}')
    store.save_snapshot(type(good)(good.stream_id, good.version, good.topic, body))

    loaded = another(store).load("s")

    assert view(loaded) == view(sessions.load("s"))
