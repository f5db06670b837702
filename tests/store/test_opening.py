"""Opening a database: many at once, one that is not ours, one that may not be written."""

import hashlib
import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from everfold.session.errors import (
    ForeignDatabaseError,
    SchemaVersionError,
    StoreError,
    StoreReadOnlyError,
)
from everfold.store.contract.follower import Follower
from everfold.store.contract.rows import row, rows, versions
from everfold.store.migrate import latest_version
from everfold.store.urls import open_store
from tests.postgres import connect, schema_of, with_query
from tests.processes import Worker, run_at_once
from tests.raw import path_of, stored_rows

STARTERS = 10


def open_and_append(url: str, stream_id: str) -> int:
    """Open the store and start a stream; return its version."""
    with open_store(url) as store:
        store.append(rows(stream_id, 1, 3))
        return store.version(stream_id)


def test_ten_processes_start_at_once_on_an_empty_database(store_url: str) -> None:
    streams = [f"s{n}" for n in range(STARTERS)]

    found = run_at_once(open_and_append, [(store_url, stream_id) for stream_id in streams])

    assert found == [3] * STARTERS
    with open_store(store_url) as store:
        assert [s.stream_id for s in store.streams()] == streams


@pytest.mark.parametrize("attempt", range(3))
def test_ten_processes_start_at_once_on_an_existing_database(store_url: str, attempt: int) -> None:
    with open_store(store_url) as store:
        store.append([row("first", 1)])
    streams = [f"s{n}" for n in range(STARTERS)]

    found = run_at_once(open_and_append, [(store_url, stream_id) for stream_id in streams])

    assert found == [3] * STARTERS
    assert len(stored_rows(store_url)) == 1 + 3 * STARTERS


def test_a_store_that_must_exist_is_not_made(store_url: str) -> None:
    with pytest.raises(StoreError):
        open_store(store_url, create=False)

    if store_url.startswith("sqlite:"):
        assert not path_of(store_url).exists()
    else:
        with connect(store_url) as server:
            tables = server.execute("SELECT to_regclass('stored_events')").fetchone()
        assert tables == (None,)


def test_a_store_that_exists_is_opened_without_creating(store_url: str) -> None:
    with open_store(store_url) as store:
        store.append(rows("a", 1, 2))

    with open_store(store_url, create=False) as again:
        again.append([row("a", 3)])
        assert again.version("a") == 3


def file_hash(path: Path) -> str:
    """Return a hash of the file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def foreign_file(sqlite_url: str) -> Path:
    """An SQLite database of another program, at the place of the store."""
    path = path_of(sqlite_url)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE notes (text TEXT)")
        connection.execute("INSERT INTO notes VALUES ('keep me')")
    return path


@pytest.mark.parametrize("read_only", [False, True])
def test_an_sqlite_database_of_another_program_is_refused_and_untouched(
    sqlite_url: str, foreign_file: Path, read_only: bool
) -> None:
    before = file_hash(foreign_file)

    with pytest.raises(ForeignDatabaseError, match=foreign_file.name):
        open_store(sqlite_url, read_only=read_only)

    assert file_hash(foreign_file) == before
    assert [each.name for each in foreign_file.parent.iterdir()] == [foreign_file.name]


@pytest.mark.parametrize(
    "content", [b"just some notes\n" * 100, b"{}", b"\x00" * 4096, os.urandom(8192)]
)
def test_a_file_that_is_no_database_is_refused_and_untouched(
    sqlite_url: str, content: bytes
) -> None:
    path = path_of(sqlite_url)
    path.write_bytes(content)

    with pytest.raises(ForeignDatabaseError, match=path.name):
        open_store(sqlite_url)

    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_store(sqlite_url: str) -> None:
    path_of(sqlite_url).touch()

    with open_store(sqlite_url) as store:
        store.append([row("a", 1)])
        assert store.version("a") == 1


def test_a_directory_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=tmp_path.name):
        open_store(f"sqlite:///{tmp_path}")


def test_a_postgres_schema_of_another_program_is_refused_and_untouched(postgres_url: str) -> None:
    with connect(postgres_url) as server:
        server.execute("CREATE TABLE stored_events (notification_id int, note text)")
        server.execute("INSERT INTO stored_events VALUES (1, 'keep me')")

        with pytest.raises(ForeignDatabaseError):
            open_store(postgres_url)

        assert server.execute("SELECT * FROM stored_events").fetchall() == [(1, "keep me")]
        tables = server.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
            " AND relkind = 'r'"
        ).fetchall()
        assert tables == [("stored_events",)]


def test_a_file_that_may_not_be_written_is_read_and_not_written(sqlite_url: str) -> None:
    events = rows("a", 1, 3)
    with open_store(sqlite_url) as store:
        store.append(events)
    before = file_hash(path_of(sqlite_url))

    with open_store(sqlite_url, read_only=True) as store:
        assert list(store.read("a")) == events
        with pytest.raises(StoreReadOnlyError):
            store.append([row("a", 4)])

    assert file_hash(path_of(sqlite_url)) == before


def test_a_postgres_store_opened_for_reading_refuses_to_append(postgres_url: str) -> None:
    events = rows("a", 1, 3)
    with open_store(postgres_url) as store:
        store.append(events)

    with open_store(postgres_url, read_only=True) as store:
        assert list(store.read("a")) == events
        with pytest.raises(StoreReadOnlyError):
            store.append([row("a", 4)])

    assert len(stored_rows(postgres_url)) == 3


def test_a_reader_sees_what_a_writer_stores_meanwhile(store_url: str) -> None:
    with open_store(store_url) as writer:
        writer.append(rows("a", 1, 2))
        with open_store(store_url, read_only=True) as reader, Follower(reader) as follower:
            follower.wait_for(2)

            writer.append([row("a", 3)])

            assert len(follower.wait_for(3)) == 3
            assert versions(list(reader.read("a"))) == [1, 2, 3]


def append_as_nobody(url: str) -> str:
    """Append as a user without any rights; return what happened."""
    with open_store("sqlite:///:memory:"):  # what is imported late may not be readable later
        pass
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65_534)
        os.setuid(65_534)
    try:
        with open_store(url) as store:
            store.append([row("a", 4)])
    except StoreError as error:
        return error.code
    return "stored"


def test_a_file_without_write_permission_refuses_appends_by_its_code() -> None:
    with tempfile.TemporaryDirectory(prefix="everfold-read-only-") as folder:
        url = f"sqlite:///{folder}/store.sqlite"
        with open_store(url) as store:
            store.append(rows("a", 1, 3))
        for each in (*Path(folder).iterdir(), Path(folder)):
            each.chmod(0o555 if each.is_dir() else 0o444)
        before = file_hash(path_of(url))

        code = Worker(append_as_nobody, url).result()

        assert code == StoreReadOnlyError.code
        assert file_hash(path_of(url)) == before


def test_a_postgres_role_that_may_only_read_is_refused_by_the_code_of_that(
    postgres_url: str,
) -> None:
    events = rows("a", 1, 3)
    schema = schema_of(postgres_url)
    role = f"reader_of_{schema}"
    with open_store(postgres_url) as store, connect(postgres_url) as admin:
        store.append(events)
        admin.execute(f"CREATE ROLE {role}".encode())
        try:
            admin.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}".encode())
            admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}".encode())

            with open_store(with_query(postgres_url, options=f"-c role={role}")) as reader:
                assert list(reader.read("a")) == events
                assert [n.event for n in reader.read_all()] == events
                with pytest.raises(StoreReadOnlyError):
                    reader.append([row("a", 4)])
        finally:
            admin.execute(f"DROP OWNED BY {role}".encode())
            admin.execute(f"DROP ROLE {role}".encode())

    assert len(stored_rows(postgres_url)) == 3


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("ahead", [1, 998])
def test_k4_a_newer_sqlite_schema_is_refused_and_the_file_is_unchanged(
    sqlite_url: str, ahead: int, read_only: bool
) -> None:
    with open_store(sqlite_url) as store:
        store.append(rows("a", 1, 3))
    path = path_of(sqlite_url)
    known = latest_version("sqlite")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {known + ahead}")
    before = file_hash(path)

    with pytest.raises(SchemaVersionError, match=rf"{known + ahead}.*\b{known}\b"):
        open_store(sqlite_url, read_only=read_only)

    assert file_hash(path) == before


@pytest.mark.parametrize("read_only", [False, True])
def test_k4_a_newer_postgres_schema_is_refused_and_nothing_is_changed(
    postgres_url: str, read_only: bool
) -> None:
    with open_store(postgres_url) as store:
        store.append(rows("a", 1, 3))
    known = latest_version("postgres")
    with connect(postgres_url) as server:
        server.execute("INSERT INTO everfold_schema VALUES (%s, 'from-later', 0)", [known + 1])
        before = server.execute("SELECT * FROM everfold_schema ORDER BY version").fetchall()

        with pytest.raises(SchemaVersionError, match=rf"{known + 1}.*\b{known}\b"):
            open_store(postgres_url, read_only=read_only)

        after = server.execute("SELECT * FROM everfold_schema ORDER BY version").fetchall()
    assert after == before
    assert len(stored_rows(postgres_url)) == 3
