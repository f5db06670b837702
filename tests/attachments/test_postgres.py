"""The schema in PostgreSQL: how it comes to be, and what a failure says."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from everfold.attachments.ids import id_of
from everfold.attachments.ports import Version
from everfold.attachments.postgres import PostgresAttachments
from everfold.attachments.versions import RequestVersions, VersionSpec
from everfold.session.errors import (
    ForeignDatabaseError,
    SchemaVersionError,
    StoreBusyError,
    StoreUnavailableError,
    StoreUrlError,
)
from tests.attachments.images import png
from tests.postgres import connect, schema_of, with_query


def tables(url: str) -> set[str]:
    """Return the names of the tables in a URL's schema."""
    with connect(url) as connection:
        cursor = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema_of(url),)
        )
        return {name for (name,) in cursor}


def test_the_schema_is_made_when_it_is_opened(postgres_url: str) -> None:
    PostgresAttachments(postgres_url).close()

    assert tables(postgres_url) == {
        "attachment_schema",
        "attachment_objects",
        "attachment_uploads",
        "attachment_version_bytes",
        "attachment_versions",
    }


def test_a_named_schema_that_is_not_there_is_made(postgres_url: str) -> None:
    url = with_query(postgres_url, schema=schema_of(postgres_url) + ' "odd"')

    with PostgresAttachments(url) as store:
        id_ = store.put(b"x")

    with PostgresAttachments(url, create=False) as again:
        assert again.read(id_) == b"x"
    with connect(postgres_url) as admin:
        quoted = schema_of(url).replace('"', '""')
        admin.execute(f'DROP SCHEMA "{quoted}" CASCADE'.encode())


def test_nothing_is_made_unless_it_is_asked_for(postgres_url: str) -> None:
    with pytest.raises(StoreUnavailableError, match="open it once for writing"):
        PostgresAttachments(postgres_url, create=False)

    assert tables(postgres_url) == set()


def test_several_that_start_at_once_make_one_schema(postgres_url: str) -> None:
    def start(turn: int) -> str:
        with PostgresAttachments(postgres_url) as store:
            return store.put(b"%d" % turn)

    with ThreadPoolExecutor(10) as pool:
        ids = sorted(pool.map(start, range(10)))

    with PostgresAttachments(postgres_url, create=False) as store:
        assert store.page() == ids
    with connect(postgres_url) as connection:
        cursor = connection.execute("SELECT version FROM attachment_schema")
        assert cursor.fetchall() == [(1,), (2,)]


def test_a_schema_of_the_first_version_is_brought_to_this_one(postgres_url: str) -> None:
    with PostgresAttachments(postgres_url) as store:
        id_ = store.put(b"x")
    with connect(postgres_url) as connection:
        connection.execute("DROP TABLE attachment_uploads")
        connection.execute("DELETE FROM attachment_schema WHERE version = 2")

    with PostgresAttachments(postgres_url) as store:
        assert store.read(id_) == b"x"
    assert "attachment_uploads" in tables(postgres_url)


def test_tables_of_another_program_are_left_alone(postgres_url: str) -> None:
    with connect(postgres_url) as connection:
        connection.execute("CREATE TABLE attachment_objects (mine text)")

    with pytest.raises(ForeignDatabaseError, match="attachment_objects"):
        PostgresAttachments(postgres_url)

    assert tables(postgres_url) == {"attachment_objects"}


def test_a_newer_schema_is_refused(postgres_url: str) -> None:
    PostgresAttachments(postgres_url).close()
    with connect(postgres_url) as connection:
        connection.execute("INSERT INTO attachment_schema VALUES (99, 'later', 0)")

    with pytest.raises(SchemaVersionError, match="version 99"):
        PostgresAttachments(postgres_url)


@pytest.mark.parametrize("query", [{"pool_size": "many"}, {"lock_timeout_s": "0"}])
def test_an_option_that_means_nothing_is_refused(postgres_url: str, query: dict[str, str]) -> None:
    with pytest.raises(StoreUrlError, match=next(iter(query))):
        PostgresAttachments(with_query(postgres_url, **query))


def test_a_url_of_another_kind_is_refused() -> None:
    with pytest.raises(StoreUrlError, match="sqlite"):
        PostgresAttachments("sqlite:///x.db")


def test_an_absent_server_is_an_error_without_the_password() -> None:
    with pytest.raises(StoreUnavailableError) as caught:
        PostgresAttachments("postgresql://me:hunter2@127.0.0.1:1/none")

    assert "127.0.0.1:1" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("tail", ["hunter2%zz@h/d", "hunter2@h/d?hunter2=1"])
def test_a_url_that_is_not_understood_is_an_error_without_the_password(tail: str) -> None:
    with pytest.raises(StoreUrlError) as caught:
        PostgresAttachments(f"postgresql://me:{tail}")

    assert "hunter2" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_connection_that_was_killed_while_idle_is_replaced(postgres_url: str) -> None:
    with PostgresAttachments(postgres_url) as store, connect(postgres_url) as admin:
        id_ = store.put(b"x")
        admin.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND query LIKE '%attachment_objects%'"
        )

        assert store.read(id_) == b"x"


def test_a_closed_store_says_so(postgres_url: str) -> None:
    store = PostgresAttachments(postgres_url)
    store.close()

    with pytest.raises(StoreUnavailableError, match="closed"):
        store.put(b"x")


def test_a_row_that_is_held_is_waited_for_no_longer_than_was_said(postgres_url: str) -> None:
    url = with_query(postgres_url, lock_timeout_s="0.05")
    with PostgresAttachments(url) as store, connect(postgres_url) as other:
        store.put(b"x")
        with other.transaction():
            other.execute("UPDATE attachment_objects SET puts = puts + 1")

            with pytest.raises(StoreBusyError):
                store.put_all([b"y", b"x"])

        assert not store.has(id_of(b"y"))


def test_bytes_that_are_there_are_not_sent_again(postgres_url: str) -> None:
    data = bytes(range(256)) * 4096
    with PostgresAttachments(postgres_url) as store, connect(postgres_url) as other:
        store.put(data)
        before = other.execute("SELECT xmin::text, pg_column_size(data) FROM attachment_objects")
        ((first, size),) = before.fetchall()
        store.put(data)
        after = other.execute("SELECT xmin::text, pg_column_size(data) FROM attachment_objects")
        ((second, same_size),) = after.fetchall()
        (toasted,) = other.execute(
            "SELECT pg_relation_size(reltoastrelid) FROM pg_class"
            " WHERE oid = to_regclass('attachment_objects')"
        ).fetchall()

    assert first != second
    assert size == same_size == len(data)
    assert toasted[0] < 1.5 * len(data)


def test_the_records_of_versions_cannot_outlive_their_image(postgres_url: str) -> None:
    with PostgresAttachments(postgres_url) as store, connect(postgres_url) as other:
        id_ = store.put(png())
        RequestVersions(store).version({"attachmentId": id_}, VersionSpec("jpeg"))
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            other.execute("UPDATE attachment_versions SET original = sha256('other')")
        store.delete(id_)

        for table in ("attachment_versions", "attachment_version_bytes"):
            cursor = other.execute(f"SELECT count(*) FROM {table}".encode())
            assert cursor.fetchone() == (0,)


def test_a_version_that_lost_the_race_leaves_no_bytes(postgres_url: str) -> None:
    with PostgresAttachments(postgres_url) as store:
        id_ = store.put(b"original")
        for data in (b"first", b"second"):
            version = Version(id_of(data), "image/png", len(data), 1, 1)
            store.record_version(id_, "k", version, data)

        assert store.sizes().version_bytes == len(b"first")
        assert not store.has(id_of(b"second"))
