"""The `eventsourcing` library's own interfaces on our tables, on both databases."""

import os
import threading
from collections.abc import Callable, Iterator

import pytest
from eventsourcing.compressor import ZlibCompressor
from eventsourcing.persistence import (
    ApplicationRecorder,
    Cipher,
    DatabaseError,
    IntegrityError,
    StoredEvent,
)
from eventsourcing.utils import Environment

from everfold.session.errors import CorruptStreamError
from everfold.store.application import SessionApplication
from everfold.store.contract.follower import PATIENCE_S
from everfold.store.contract.rows import row, rows, versions
from everfold.store.mapper import SessionMapper
from everfold.store.urls import open_store
from tests.raw import stored_rows


@pytest.fixture
def application(store_url: str) -> Iterator[SessionApplication]:
    """The library's application on an empty store."""
    with SessionApplication(url=store_url) as application:
        yield application


@pytest.fixture
def recorder(application: SessionApplication) -> ApplicationRecorder:
    """The application's recorder."""
    return application.recorder


def stored(stream_id: str, version: int, topic: str = "t/x") -> StoredEvent:
    """Return a row as the library holds it."""
    return StoredEvent(stream_id, version, topic, b'{"version": %d}' % version)


def test_rows_that_the_recorder_stored_are_read_through_it_and_through_the_store(
    application: SessionApplication, recorder: ApplicationRecorder
) -> None:
    events = [stored("a", version) for version in (1, 2, 3)]

    positions = recorder.insert_events(events)

    assert list(recorder.select_events("a")) == events
    assert list(positions or ()) == [n.position for n in application.store.read_all()]
    assert [e.state for e in application.store.read("a")] == [e.state for e in events]


@pytest.mark.parametrize(
    ("gt", "lte", "desc", "limit", "expected"),
    [
        (None, None, False, None, [1, 2, 3, 4]),
        (1, None, False, 2, [2, 3]),
        (None, 3, True, None, [3, 2, 1]),
        (0, 9, True, 1, [4]),
    ],
)
def test_the_recorder_selects_windows(
    recorder: ApplicationRecorder,
    gt: int | None,
    lte: int | None,
    desc: bool,
    limit: int | None,
    expected: list[int],
) -> None:
    recorder.insert_events([stored("a", version) for version in (1, 2, 3, 4)])

    found = recorder.select_events("a", gt=gt, lte=lte, desc=desc, limit=limit)

    assert [each.originator_version for each in found] == expected


def test_a_taken_version_is_the_librarys_integrity_error(recorder: ApplicationRecorder) -> None:
    recorder.insert_events([stored("a", 1)])

    with pytest.raises(IntegrityError):
        recorder.insert_events([stored("a", 1, "t/other")])


def test_the_recorder_gives_the_notifications_of_the_asked_topics(
    recorder: ApplicationRecorder,
) -> None:
    recorder.insert_events([stored("a", 1), stored("a", 2, "t/y"), stored("b", 1)])

    everything = recorder.select_notifications(start=1, limit=10)
    some = recorder.select_notifications(start=1, limit=10, topics=["t/y"])
    rest = recorder.select_notifications(start=everything[0].id, limit=1, inclusive_of_start=False)

    assert [(each.originator_id, each.originator_version) for each in everything] == [
        ("a", 1),
        ("a", 2),
        ("b", 1),
    ]
    assert list(some) == [everything[1]]
    assert list(rest) == [everything[1]]
    assert recorder.max_notification_id() == everything[-1].id


def test_the_librarys_subscription_follows_the_store(
    application: SessionApplication, recorder: ApplicationRecorder
) -> None:
    application.store.append(rows("a", 1, 2))

    with recorder.subscribe(gt=0) as subscription:
        seen = [next(subscription) for _ in range(2)]
        writing = threading.Thread(target=application.store.append, args=([row("b", 1)],))
        writing.start()
        seen.append(next(subscription))
        writing.join(PATIENCE_S)

    assert [(n.originator_id, n.originator_version) for n in seen] == [
        ("a", 1),
        ("a", 2),
        ("b", 1),
    ]


@pytest.mark.parametrize("text", ["a\0b", "a\ud800"])
def test_text_that_no_database_can_hold_is_the_librarys_error(
    recorder: ApplicationRecorder, text: str
) -> None:
    uses: list[Callable[[], object]] = [
        lambda: recorder.insert_events([StoredEvent(text, 1, "t", b"{}")]),
        lambda: recorder.select_events(text),
        lambda: recorder.select_notifications(1, 10, topics=[text]),
        lambda: recorder.subscribe(topics=[text]),
    ]

    for use in uses:
        with pytest.raises(DatabaseError, match="cannot be stored or looked up"):
            use()


class NonceCipher(Cipher):
    """Gives other bytes each time, as ciphers do; hides nothing from anybody who looks twice."""

    def __init__(self, environment: Environment) -> None:
        del environment  # it holds no key

    def encrypt(self, plaintext: bytes) -> bytes:
        """Return a random byte and the text shifted by it."""
        (nonce,) = os.urandom(1)
        return bytes([nonce]) + bytes((byte + nonce + 1) % 256 for byte in plaintext)

    def decrypt(self, ciphertext: bytes) -> bytes:
        """Return the text."""
        return bytes((byte - ciphertext[0] - 1) % 256 for byte in ciphertext[1:])


def hiding() -> SessionMapper:
    """Return a mapper that compresses and encrypts."""
    return SessionMapper(compressor=ZlibCompressor(), cipher=NonceCipher(Environment()))


def test_states_are_encrypted_and_compressed_where_that_is_asked_for(store_url: str) -> None:
    text = "nobody else reads this " * 50
    events = [row("a", 1), row("a", 2, text=text)]

    with open_store(store_url, mapper=hiding()) as store:
        store.append(events)
        store.copy_stream("a", 2, row("c", 1), [])

        assert list(store.read("a")) == events
        assert [e.data["text"] for e in store.read("c", after=1)] == [text]

    for *_, state in stored_rows(store_url):
        assert b"nobody" not in state
        assert len(state) < len(text)


def test_a_repeated_append_of_encrypted_events_counts_as_done(store_url: str) -> None:
    events = rows("a", 1, 3)
    with open_store(store_url, mapper=hiding()) as store:
        first = store.append(events)

        again = store.append(events)

        assert list(again) == list(first)
        assert versions(list(store.read("a"))) == [1, 2, 3]


def test_a_stream_that_was_stored_with_another_mapper_is_an_error_that_names_it(
    store_url: str,
) -> None:
    with open_store(store_url, mapper=hiding()) as store:
        store.append(rows("hidden", 1, 3))

    with (
        open_store(store_url, mapper=SessionMapper(compressor=ZlibCompressor())) as store,
        pytest.raises(CorruptStreamError, match="hidden"),
    ):
        list(store.read("hidden"))
