"""Connections that end at the wrong moment: an append happened, or did not, and says so."""

import pytest

from everfold.session.errors import ConflictError, StoreUnavailableError
from everfold.session.events import Recorded
from everfold.session.ports import SessionStore
from everfold.store.contract.rows import row, rows, versions
from everfold.store.urls import open_store
from tests.postgres import connect, own_server, with_query
from tests.proxy import Proxy
from tests.raw import stored_rows

MARK = b"the-marked-append"


def append_until_done(store: SessionStore, batch: list[Recorded]) -> list[int]:
    """Append; after a lost connection do what callers do: the same again."""
    try:
        return list(store.append(batch))
    except StoreUnavailableError:
        return list(store.append(batch))


@pytest.mark.parametrize("key", [None, "k1"])
def test_an_append_whose_commit_reply_was_lost_is_stored_once(
    postgres_url: str, proxy: Proxy, key: str | None
) -> None:
    batch = [row("a", 1), *rows("a", 2, 3, text=MARK.decode())]
    with open_store(proxy.url) as store:
        proxy.lose_reply_to(MARK)

        positions = store.append(batch, key=key)

        assert proxy.cuts == 1
        assert [stored[0] for stored in stored_rows(postgres_url)] == list(positions)
        assert list(store.read("a")) == batch


def test_an_append_after_a_lost_reply_is_no_conflict(postgres_url: str, proxy: Proxy) -> None:
    with open_store(proxy.url) as store:
        store.append([row("a", 1)])
        proxy.lose_reply_to(MARK)
        store.append([row("a", 2, text=MARK.decode())])

        store.append([row("a", 3)])

        assert versions(list(store.read("a"))) == [1, 2, 3]


def test_a_lost_reply_to_another_writers_conflict_is_a_conflict(
    postgres_url: str, proxy: Proxy
) -> None:
    theirs = row("a", 2, text="theirs")
    with open_store(proxy.url) as store, open_store(postgres_url) as other:
        store.append([row("a", 1)])
        other.append([theirs])
        proxy.lose_reply_to(MARK)

        with pytest.raises(ConflictError) as caught:
            append_until_done(store, [row("a", 2, text=MARK.decode())])

        assert list(caught.value.appended) == [theirs]
        assert list(store.read("a", after=1)) == [theirs]


def test_an_append_whose_request_was_lost_can_be_repeated(postgres_url: str, proxy: Proxy) -> None:
    batch = rows("a", 1, 3, text=MARK.decode())
    with open_store(proxy.url) as store:
        store.version("a")
        proxy.lose_request(MARK)

        positions = append_until_done(store, batch)

        assert proxy.cuts == 1
        assert [stored[0] for stored in stored_rows(postgres_url)] == positions
        assert list(store.read("a")) == batch


def test_a_copy_whose_commit_reply_was_lost_is_there_once_or_says_so(
    postgres_url: str, proxy: Proxy
) -> None:
    header = row("c", 1, text=MARK.decode())
    with open_store(proxy.url) as store:
        store.append(rows("a", 1, 3))
        proxy.lose_reply_to(MARK)

        outcome = copy_or_lose(store, header)

        assert proxy.cuts == 1
        assert outcome in {3, "lost"}
        assert versions(list(store.read("c"))) == [1, 2, 3]


def copy_or_lose(store: SessionStore, header: Recorded) -> int | str:
    """Copy stream `a`; say when the connection was lost meanwhile."""
    try:
        return store.copy_stream("a", 3, header, [])
    except StoreUnavailableError:
        return "lost"


def test_a_killed_idle_connection_is_opened_again(postgres_url: str) -> None:
    url = with_query(postgres_url, application_name="idle-kill")
    with open_store(url) as store, connect(postgres_url) as admin:
        store.append([row("a", 1)])
        for version in (2, 3):
            killed = admin.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE application_name = 'idle-kill'"
            ).fetchall()
            assert killed

            append_until_done(store, [row("a", version)])

            assert versions(list(store.read("a"))) == list(range(1, version + 1))


def test_a_read_after_a_killed_idle_connection_succeeds(postgres_url: str, proxy: Proxy) -> None:
    with open_store(proxy.url) as store:
        store.append(rows("a", 1, 3))
        proxy.cut_all()

        assert versions(list(store.read("a"))) == [1, 2, 3]


def test_a_store_goes_on_after_the_server_was_restarted() -> None:
    with own_server() as server:
        url = with_query(server.get_uri(), schema="public")
        with open_store(url) as store:
            store.append(rows("a", 1, 2))
            server.stop()

            with pytest.raises(StoreUnavailableError):
                store.append([row("a", 3)])

            server.start()
            append_until_done(store, [row("a", 3)])
            assert versions(list(store.read("a"))) == [1, 2, 3]


def test_a_server_that_is_not_there_is_named(tmp_path_factory: pytest.TempPathFactory) -> None:
    nowhere = tmp_path_factory.mktemp("nobody-listens-here")

    with pytest.raises(StoreUnavailableError) as caught:
        open_store(f"postgresql://postgres@/postgres?host={nowhere}")

    assert "nobody-listens-here" in str(caught.value)
