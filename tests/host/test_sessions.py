"""The path of an append, and what surrounds it."""

import threading
from collections.abc import Sequence

import pytest

from everfold.host.means import system_means
from everfold.host.sessions import Sessions
from everfold.projections.catalog import detached_composition
from everfold.projections.image_offload.projection import IMAGE_OFFLOAD
from everfold.projections.image_offload.selection import oldest_images
from everfold.session.composition import Composition
from everfold.session.deciding import AppendEvent
from everfold.session.errors import (
    AppendVetoedError,
    ConflictError,
    EventIdReusedError,
    IdError,
    ReentrantAppendError,
    SessionExistsError,
    SessionNotFoundError,
    SystemHeadError,
    TooLargeError,
)
from everfold.session.events import Origin, Recorded
from everfold.session.ports import SessionStore
from everfold.session.session import Session
from tests.domain.kit import replace, system, text, user
from tests.host.kit import another, hello, pictures, types


def test_a_new_session_is_there_for_others(store: SessionStore, sessions: Sessions) -> None:
    sessions.create("s", cwd="/srv/quay")

    loaded = another(store).load("s")

    assert loaded.header["cwd"] == "/srv/quay"
    assert loaded.next_seq == 0


def test_ids_are_counted_and_taken_ones_are_skipped(sessions: Sessions) -> None:
    """R176."""
    sessions.create("session-1")

    first, second = sessions.create(), sessions.create()

    assert (first.id, second.id) == ("session-2", "session-3")


def test_a_taken_id_is_refused(sessions: Sessions) -> None:
    """R177."""
    sessions.create("s")

    with pytest.raises(SessionExistsError, match="'s' is taken"):
        sessions.create("s")


def test_an_id_with_a_separator_is_refused(sessions: Sessions) -> None:
    with pytest.raises(IdError, match="character 2 is a path separator"):
        sessions.create("..\\x")


def test_a_session_that_is_not_there_is_not_found(sessions: Sessions) -> None:
    with pytest.raises(SessionNotFoundError, match="no session 'nobody'"):
        sessions.load("nobody")


def test_an_append_to_a_session_that_is_not_there_is_refused(sessions: Sessions) -> None:
    with pytest.raises(SessionNotFoundError):
        sessions.append("nobody", "todo/write", {"todos": []})


def test_a_batch_is_stored_whole_or_not_at_all(store: SessionStore, sessions: Sessions) -> None:
    sessions.create("s")
    head = AppendEvent("system/message", system("p"), {"surfaceOp": "append"})
    over_head = AppendEvent("user/message", user("u"), replace(0, 0))

    with pytest.raises(SystemHeadError):
        sessions.append_batch("s", [head, hello(), over_head])

    assert store.version("s") == 1
    assert sessions.append_batch("s", [hello()])[0].seq == 0


def test_a_veto_stores_nothing(store: SessionStore, sessions: Sessions) -> None:
    """R143."""
    sessions.create("s")

    def too_loud(session: Session, events: Sequence[Recorded]) -> None:
        raise AppendVetoedError(f"{events[0].type} of {session.id} is too loud")

    sessions.publications.append(too_loud)
    with pytest.raises(AppendVetoedError, match="user/message of s is too loud"):
        sessions.append_batch("s", [hello()])

    assert store.version("s") == 1
    assert list(sessions.load("s").nodes) == []


def test_a_vetoed_omission_leaves_no_dependency(sessions: Sessions) -> None:
    """R119."""
    composition = Composition()
    dispose = composition.register(IMAGE_OFFLOAD)
    host = Sessions(sessions.store, composition)
    host.create("s")
    host.append_batch("s", [pictures("u", 1)])
    veto: list[bool] = [True]

    def refuse(_session: Session, _events: Sequence[Recorded]) -> None:
        if veto:
            raise AppendVetoedError("not now")

    host.publications.append(refuse)
    with pytest.raises(AppendVetoedError):
        host.append("s", "image/offload", {"targets": [{"seq": 0, "imageIndexes": [0]}]})
    dispose()
    veto.clear()

    assert host.append_batch("s", [hello()])[0].seq == 1


def test_an_append_inside_a_publication_is_refused(sessions: Sessions) -> None:
    """R145."""
    sessions.create("s")
    refused: list[str] = []

    def append_more(session: Session, _events: Sequence[Recorded]) -> None:
        try:
            sessions.append(session.id, "todo/write", {"todos": []})
        except ReentrantAppendError as error:
            refused.append(error.code)

    sessions.publications.append(append_more)
    sessions.append_batch("s", [hello()])

    assert refused == ["reentrant"]
    assert types(sessions, "s") == ["user/message"]


def test_an_observer_that_raises_undoes_nothing(
    sessions: Sessions, caplog: pytest.LogCaptureFixture
) -> None:
    """R144."""
    sessions.create("s")
    told: list[int] = []

    def broken(_session: str, _events: Sequence[Recorded]) -> None:
        raise RuntimeError("observer fell over")

    sessions.observers.append(broken)
    sessions.observers.append(lambda _session, events: told.append(events[0].seq))
    sessions.append_batch("s", [hello()])

    assert told == [0]
    assert types(sessions, "s") == ["user/message"]
    assert "observer fell over" in caplog.text


def test_an_observer_may_append(sessions: Sessions) -> None:
    sessions.create("s")

    def note_title(session: str, events: Sequence[Recorded]) -> None:
        if events[0].type == "user/message":
            sessions.append(session, "session/title", {"title": "t", "messageSeqs": [0]})

    sessions.observers.append(note_title)
    sessions.append_batch("s", [hello()])

    assert types(sessions, "s") == ["user/message", "session/title"]


def test_a_wrong_expectation_is_a_conflict_that_says_what_came(
    store: SessionStore, sessions: Sessions
) -> None:
    """V5, B1."""
    sessions.create("s")
    sessions.load("s")
    another(store).append_batch("s", [hello("theirs")])

    with pytest.raises(ConflictError) as caught:
        sessions.append("s", "todo/write", {"todos": []}, expected_seq=0)

    assert caught.value.expected_version == 1
    assert [event.data["id"] for event in caught.value.appended] == ["theirs"]
    assert types(sessions, "s") == ["user/message"]


def test_a_planner_is_asked_again_after_a_lost_race(
    store: SessionStore, sessions: Sessions
) -> None:
    """V5: replanned, never replayed."""
    sessions.create("s")
    sessions.append_batch("s", [pictures("u", 3)])
    rival = another(store)
    asked: list[int] = []

    def omit_oldest(session: Session) -> list[AppendEvent]:
        asked.append(session.next_seq)
        if len(asked) == 1:
            rival.append("s", "image/offload", {"targets": [{"seq": 0, "imageIndexes": [0]}]})
        wish = oldest_images(session, 1)
        return [] if wish is None else [wish]

    stored = sessions.append_batch("s", omit_oldest)

    assert asked == [1, 2]
    assert stored[0].data == {"targets": [{"seq": 0, "imageIndexes": [1]}]}
    assert stored[0].seq == 2


def test_an_empty_plan_stores_nothing(store: SessionStore, sessions: Sessions) -> None:
    sessions.create("s")

    stored = sessions.append_batch("s", lambda _session: [])

    assert stored == ()
    assert store.version("s") == 1


def test_a_repeated_event_id_gives_the_first_answer(
    store: SessionStore, sessions: Sessions
) -> None:
    """B10: the same key three times, from other processes too, is one event."""
    sessions.create("s")
    first = sessions.append("s", "todo/write", {"todos": []}, event_id="k-1")
    sessions.append_batch("s", [hello()])

    again = sessions.append("s", "todo/write", {"todos": []}, event_id="k-1")
    elsewhere = another(store).append("s", "todo/write", {"todos": []}, event_id="k-1")

    assert first == again == elsewhere
    assert types(sessions, "s") == ["todo/write", "user/message"]


def test_a_repeated_event_id_with_other_content_is_refused(sessions: Sessions) -> None:
    """B10."""
    sessions.create("s")
    sessions.append("s", "todo/write", {"todos": []}, event_id="k-1")

    with pytest.raises(EventIdReusedError, match="'k-1'"):
        sessions.append("s", "todo/write", {"todos": [1]}, event_id="k-1")


def test_a_repeated_batch_gives_its_first_positions(sessions: Sessions) -> None:
    """B10."""
    sessions.create("s")
    batch = [AppendEvent("turn/start", {"turn": 1}, None, "b-1"), hello()]
    first = sessions.append_batch("s", batch)

    again = sessions.append_batch("s", batch)

    assert [event.seq for event in again] == [event.seq for event in first] == [0, 1]


def test_observers_are_not_told_of_a_repetition(sessions: Sessions) -> None:
    sessions.create("s")
    told: list[int] = []
    sessions.observers.append(lambda _session, events: told.append(len(events)))

    for _ in range(3):
        sessions.append("s", "todo/write", {"todos": []}, event_id="k")

    assert told == [1]


def test_actor_and_correlation_are_kept_beside_the_payload(sessions: Sessions) -> None:
    sessions.create("s")

    stored = sessions.append(
        "s", "todo/write", {"todos": []}, origin=Origin(actor="ana", correlation_id="c-9")
    )

    envelope = next(iter(sessions.log("s"))).envelope()
    assert (envelope["actor"], envelope["correlationId"]) == ("ana", "c-9")
    assert stored.record().keys() == {"type", "seq", "time", "data"}


def test_an_event_over_the_cap_is_refused(store: SessionStore) -> None:
    host = Sessions(store, detached_composition(), means=system_means(max_event_bytes=500))
    host.create("s")

    with pytest.raises(TooLargeError, match="500 is the most"):
        host.append_batch("s", [hello("u", text("x" * 600))])

    assert store.version("s") == 1


def test_threads_of_one_host_share_a_session_without_conflicts(sessions: Sessions) -> None:
    sessions.create("s")

    def work(number: int) -> None:
        for step in range(10):
            sessions.append("s", "todo/write", {"todos": [number, step]})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    todos = [event.data["todos"] for event in sessions.log("s")]
    assert sorted(todos) == sorted([n, s] for n in range(6) for s in range(10))
    assert [event.seq for event in sessions.log("s")] == list(range(60))


def test_equal_times_keep_their_order(store: SessionStore) -> None:
    """B3, J2: order is that of the seqs, whatever the clock says."""
    frozen = system_means()
    host = Sessions(
        store, detached_composition(), means=type(frozen)(clock=lambda: 5, new_id=frozen.new_id)
    )
    host.create("s")
    host.append_batch("s", [hello(f"batch-{number}") for number in range(200)])
    for number in range(20):
        host.append_batch("s", [hello(f"single-{number}")])

    names = [event.data["id"] for event in another(store).log("s")]

    wanted = [f"batch-{n}" for n in range(200)] + [f"single-{n}" for n in range(20)]
    assert names == wanted
    assert [m["id"] for m in another(store).load("s").messages()] == wanted


def test_a_deleted_session_is_gone_and_its_id_is_not_given_again(
    store: SessionStore, sessions: Sessions
) -> None:
    """L5."""
    sessions.create("s")
    rival = another(store)
    rival.load("s")

    assert sessions.delete("s")

    with pytest.raises(SessionNotFoundError):
        rival.load("s")
    with pytest.raises(SessionExistsError, match="was deleted"):
        rival.append("s", "todo/write", {"todos": []})
    with pytest.raises(SessionExistsError, match="was deleted"):
        sessions.create("s")


def test_a_batch_is_judged_on_the_history_as_it_is_stored(
    store: SessionStore, sessions: Sessions
) -> None:
    """V5: a refusal on a history that others have moved on is no refusal."""
    sessions.create("s")
    sessions.load("s")
    another(store).append_batch("s", [hello("theirs")])

    stored = sessions.append("s", "user/message", user("mine"), replace(0, 0))

    assert stored.seq == 1
    assert [m["id"] for m in sessions.load("s").messages()] == ["mine"]


def test_an_expectation_is_met_by_what_others_stored(
    store: SessionStore, sessions: Sessions
) -> None:
    sessions.create("s")
    sessions.load("s")
    another(store).append_batch("s", [hello("theirs")])

    stored = sessions.append("s", "todo/write", {"todos": []}, expected_seq=1)

    assert stored.seq == 1


def test_observers_are_told_in_the_order_of_the_log_by_whichever_thread(sessions: Sessions) -> None:
    sessions.create("s")
    told: list[int] = []
    slow = threading.Event()

    def observe(_session: str, events: Sequence[Recorded]) -> None:
        if events[0].seq == 0:
            slow.wait(30)
        told.append(events[0].seq)

    sessions.observers.append(observe)
    first = threading.Thread(target=sessions.append, args=("s", "todo/write", {"todos": []}))
    first.start()
    while sessions.load("s").next_seq == 0:
        pass
    for _ in range(3):
        sessions.append("s", "todo/write", {"todos": []})
    assert told == []
    slow.set()
    first.join()

    assert told == [0, 1, 2, 3]
