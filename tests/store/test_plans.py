"""What a statement reads on PostgreSQL once the server knows the tables' statistics."""

import time

from everfold.store.contract.rows import row, rows
from everfold.store.postgres_backend import PostgresBackend
from everfold.store.urls import open_store
from tests.postgres import connect, with_query

SETTINGS = "SELECT current_setting('jit'), current_setting('default_transaction_isolation')"
EVENTS = 5000
BATCH = 1000
TEXT = "x" * 500
PATIENCE_S = 30.0


def scanned(url: str) -> tuple[int, int]:
    """Return how often append keys were looked up, and how many events the server has read."""
    with connect(url) as server:
        found = server.execute(
            "SELECT relname, seq_scan + idx_scan, seq_tup_read + idx_tup_fetch"
            " FROM pg_stat_user_tables WHERE schemaname = current_schema()"
        ).fetchall()
    by_name = {name: (scans, rows_read) for name, scans, rows_read in found}
    return by_name["append_keys"][0], by_name["stored_events"][1]


def test_an_append_that_is_looked_up_by_its_key_reads_no_other_event(postgres_url: str) -> None:
    with open_store(postgres_url) as store:
        store.append([row("a", 1)])
        for first in range(2, EVENTS, BATCH):
            store.append(rows("a", first, first + BATCH - 1, text=TEXT), key=f"key-{first}")
    with connect(postgres_url) as server:
        server.execute("ANALYZE stored_events, append_keys")
    lookups, before = scanned(postgres_url)

    with open_store(postgres_url, create=False) as store:
        found = store.find_append("a", f"key-{2 + BATCH}")
        missed = store.find_append("a", "another")

    # The server counts a connection's work when that is closed.
    deadline = time.monotonic() + PATIENCE_S
    while scanned(postgres_url)[0] < lookups + 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (len(found), len(missed)) == (BATCH, 0)
    assert scanned(postgres_url) == (lookups + 2, before + BATCH)


def test_a_connection_compiles_no_statement_and_sees_what_was_committed_last(
    postgres_url: str,
) -> None:
    url = with_query(
        postgres_url, options="-c jit=on -c default_transaction_isolation=serializable"
    )
    with open_store(url) as store:
        assert isinstance(store.backend, PostgresBackend)
        with store.backend.datastore.using() as connection:
            assert connection.execute(SETTINGS).fetchone() == ("off", "read committed")
