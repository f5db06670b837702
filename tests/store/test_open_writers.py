"""A transaction that stays open holds back who follows the log on PostgreSQL, at its place, and no writer."""

from collections.abc import Iterator

import pytest
from eventsourcing.application import Application
from psycopg.errors import FeatureNotSupported

from everfold.session.errors import StoreError, StoreReadOnlyError
from everfold.session.ports import Notification, SessionStore
from everfold.store.application import SessionApplication
from everfold.store.contract.follower import Follower
from everfold.store.contract.rows import row, rows
from everfold.store.urls import open_store
from tests.postgres import connect, fresh_schema, own_server, with_query
from tests.raw import stored_rows
from tests.store.open_writers import OpenWriter, open_writer

Place = tuple[str, int]


@pytest.fixture
def store(postgres_url: str) -> Iterator[SessionStore]:
    """A store with the stream `a` of one row."""
    with open_store(postgres_url) as store:
        store.append([row("a", 1)])
        yield store


@pytest.fixture
def slow(postgres_url: str, store: SessionStore) -> Iterator[OpenWriter]:
    """A transaction that has appended the second row of `a`, and stays open."""
    del store  # it made the stream
    with open_writer(postgres_url, [row("a", 2)]) as writer:
        yield writer


def places(notifications: list[Notification]) -> list[Place]:
    """Return stream and version of each."""
    return [(n.event.originator_id, n.event.originator_version) for n in notifications]


def test_other_writers_commit_while_one_stays_open(store: SessionStore, slow: OpenWriter) -> None:
    store.append(rows("b", 1, 3))
    store.copy_stream("b", 3, row("c", 1), [])
    store.append([*rows("d", 1, 2), *rows("e", 1, 2)])

    assert [store.version(each) for each in "abcde"] == [1, 3, 3, 2, 2]
    assert store.delete_stream("d")


def test_what_commits_late_comes_at_its_place_to_a_follower(
    store: SessionStore, slow: OpenWriter
) -> None:
    with Follower(store) as follower:
        follower.wait_for(1)
        store.append([row("b", 1)])
        store.append([row("b", 2)])
        held_back = places(list(store.read_all()))
        slow.commit()
        seen = follower.wait_for(4)

    assert held_back == [("a", 1)]
    assert places(seen) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert seen == list(store.read_all())


def test_what_is_given_up_holds_a_follower_back_no_longer(
    store: SessionStore, slow: OpenWriter
) -> None:
    with Follower(store) as follower:
        store.append([row("b", 1)])
        assert places(follower.wait_for(1)) == [("a", 1)]
        slow.roll_back()

        assert places(follower.wait_for(2)) == [("a", 1), ("b", 1)]


def test_a_writer_whose_connection_is_killed_holds_a_follower_back_no_longer(
    store: SessionStore, slow: OpenWriter, postgres_url: str
) -> None:
    with Follower(store) as follower, connect(postgres_url) as admin:
        store.append([row("b", 1)])
        pid = slow.connection.info.backend_pid
        admin.execute("SELECT pg_terminate_backend(%s)", [pid])

        assert places(follower.wait_for(2)) == [("a", 1), ("b", 1)]


def test_each_of_two_open_writers_holds_back_what_is_above_it(
    store: SessionStore, postgres_url: str, slow: OpenWriter
) -> None:
    store.append([row("b", 1)])
    with open_writer(postgres_url, [row("c", 1)]) as later:
        store.append([row("b", 2)])
        before = places(list(store.read_all()))
        slow.commit()
        between = places(list(store.read_all()))
        later.commit()

    assert before == [("a", 1)]
    assert between == [("a", 1), ("a", 2), ("b", 1)]
    assert places(list(store.read_all())) == [*between, ("c", 1), ("b", 2)]


def test_an_open_reader_of_the_log_holds_nobody_back(
    store: SessionStore, postgres_url: str
) -> None:
    with connect(postgres_url) as reader, reader.transaction():
        reader.execute("SELECT count(*) FROM stored_events")
        store.append([row("b", 1)])

        assert places(list(store.read_all())) == [("a", 1), ("b", 1)]


def test_a_part_of_a_transaction_that_was_rolled_back_holds_nobody_back(
    store: SessionStore, postgres_url: str
) -> None:
    with open_writer(postgres_url) as writer:
        writer.connection.execute("SAVEPOINT part")
        writer.append([row("a", 2)])
        store.append([row("b", 1)])
        held_back = places(list(store.read_all()))
        writer.connection.execute("ROLLBACK TO part")

        assert held_back == [("a", 1)]
        assert places(list(store.read_all())) == [("a", 1), ("b", 1)]


def test_a_released_savepoint_holds_back_until_the_transaction_ends(
    store: SessionStore, postgres_url: str
) -> None:
    with open_writer(postgres_url) as writer:
        writer.connection.execute("SAVEPOINT part")
        writer.append([row("a", 2)])
        writer.connection.execute("RELEASE part")
        store.append([row("b", 1)])
        held_back = places(list(store.read_all()))
        writer.commit()

    assert held_back == [("a", 1)]
    assert places(list(store.read_all())) == [("a", 1), ("a", 2), ("b", 1)]


def test_an_open_writer_of_another_tenant_holds_nobody_back(
    store: SessionStore, postgres_server_url: str
) -> None:
    with fresh_schema(postgres_server_url) as other_url, open_store(other_url) as other:
        other.append([row("a", 1)])
        with open_writer(other_url, [row("a", 2)]):
            store.append([row("b", 1)])
            other.append([row("b", 1)])

            assert places(list(store.read_all())) == [("a", 1), ("b", 1)]
            assert places(list(other.read_all())) == [("a", 1)]


def test_the_first_writer_of_all_holds_back_the_second(postgres_url: str) -> None:
    with open_store(postgres_url) as store:
        with open_writer(postgres_url, [row("a", 1)]) as first:
            store.append([row("b", 1)])
            held_back = list(store.read_all())
            first.commit()

        assert held_back == []
        assert places(list(store.read_all())) == [("a", 1), ("b", 1)]


@pytest.mark.parametrize("border", [2**31, 2**32, 2**33 + 2**31])
def test_positions_beyond_what_a_lock_can_name_are_in_order_all_the_same(
    store: SessionStore, postgres_url: str, border: int
) -> None:
    with connect(postgres_url) as admin:
        admin.execute("SELECT setval('stored_events_notification_id_seq', %s)", [border - 3])
    store.append([row("b", 1)])
    with open_writer(postgres_url, [row("a", 2)]) as slow:
        store.append(rows("b", 2, 6))
        held_back = store.read_all()
        slow.commit()
    positions = [n.position for n in store.read_all()]

    assert places(list(held_back)) == [("a", 1), ("b", 1)]
    assert places(list(store.read_all())) == [
        *[("a", 1), ("b", 1), ("a", 2)],
        *[("b", version) for version in range(2, 7)],
    ]
    assert positions[1:] == [*range(border - 2, border + 5)]


def test_the_librarys_log_shows_what_is_settled_alone(postgres_url: str) -> None:
    with SessionApplication(url=postgres_url) as application:
        recorder = application.recorder
        application.store.append([row("a", 1)])
        (first,) = recorder.select_notifications(None, 10)
        with open_writer(postgres_url, [row("a", 2)]) as slow:
            application.store.append([row("b", 1)])
            held_back = recorder.select_notifications(None, 10)
            newest = recorder.max_notification_id()
            section = application.notification_log.select(start=1, limit=10)
            beyond = recorder.select_notifications(None, 10, stop=first.id + 100)
            slow.commit()
        settled = recorder.select_notifications(None, 10)

    assert held_back == section == beyond == [first]
    assert newest == first.id
    assert [(n.originator_id, n.originator_version) for n in settled] == [
        ("a", 1),
        ("a", 2),
        ("b", 1),
    ]


def test_the_librarys_subscription_passes_nothing_over(postgres_url: str) -> None:
    with SessionApplication(url=postgres_url) as application:
        application.store.append([row("a", 1)])
        with application.recorder.subscribe(gt=0) as subscription:
            seen = [next(subscription)]
            with open_writer(postgres_url, [row("a", 2)]) as slow:
                application.store.append([row("b", 1)])
                slow.commit()
            seen += [next(subscription), next(subscription)]

    assert [(n.originator_id, n.originator_version) for n in seen] == [
        ("a", 1),
        ("a", 2),
        ("b", 1),
    ]
    assert issubclass(SessionApplication, Application)


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize(
    "call",
    [
        "append_events('{a}', '{2}', '{1}', '{t/x}', '{\"{}\"}', NULL)",
        "append_events('{a,b}', '{2,1}', '{1,1}', '{t/x,t/x}', '{\"{}\",\"{}\"}', NULL)",
        "copy_stream('a', 1, 'c', 't/x', '{}', '{}', '{}')",
        "delete_stream('a')",
        "settled_position()",
    ],
)
def test_a_transaction_with_a_snapshot_of_its_own_may_neither_write_the_log_nor_follow_it(
    store: SessionStore, postgres_url: str, level: str, call: str
) -> None:
    with connect(postgres_url) as server:
        server.execute(f"BEGIN ISOLATION LEVEL {level}".encode())
        with pytest.raises(FeatureNotSupported, match="READ COMMITTED"):
            server.execute(f"SELECT {call}".encode())

    assert [stored[1:3] for stored in stored_rows(postgres_url)] == [("a", 1)]


def test_a_store_is_used_as_ever_where_another_isolation_is_the_default(postgres_url: str) -> None:
    url = with_query(postgres_url, options="-c default_transaction_isolation=serializable")
    with open_store(url) as store:
        store.append(rows("a", 1, 2))
        store.append([row("a", 3)])
        store.copy_stream("a", 3, row("c", 1), [])
        store.delete_stream("a")
        store.append([row("c", 4)])
        with Follower(store) as follower:
            seen = follower.wait_for(4)

    assert places(seen) == [("c", version) for version in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("end", "expected"),
    [("COMMIT", [("a", 1), ("a", 2), ("b", 1)]), ("ROLLBACK", [("a", 1), ("b", 1)])],
)
def test_a_prepared_transaction_holds_back_until_it_ends(end: str, expected: list[Place]) -> None:
    with own_server("max_prepared_transactions = 2\nfsync = off\n") as server:
        url = with_query(server.get_uri(), schema="public")
        with open_store(url) as store:
            store.append([row("a", 1)])
            with open_writer(url, [row("a", 2)]) as writer:
                writer.connection.execute("PREPARE TRANSACTION 'late'")
            store.append([row("b", 1)])
            held_back = places(list(store.read_all()))
            server.stop()
            server.start()
            after_restart = places(list(store.read_all()))
            with connect(url) as admin:
                admin.execute(f"{end} PREPARED 'late'".encode())

            assert held_back == after_restart == [("a", 1)]
            assert places(list(store.read_all())) == expected


def test_a_standby_reads_sessions_and_refuses_the_order_that_it_cannot_know() -> None:
    with own_server() as server:
        url = with_query(server.get_uri(), schema="public")
        events = rows("a", 1, 3)
        with open_store(url) as store:
            store.append(events)
        server.stop()
        (server.pgdata / "standby.signal").touch()
        server.start()

        with open_store(url, read_only=True) as standby:
            assert list(standby.read("a")) == events
            with pytest.raises(StoreError, match="read the global order on the primary server"):
                standby.read_all()
            with pytest.raises(StoreReadOnlyError):
                standby.append([row("a", 4)])
