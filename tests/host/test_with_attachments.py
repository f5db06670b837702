"""Sessions and attachments share one PostgreSQL schema, whichever comes first."""

from everfold.attachments.postgres import PostgresAttachments
from everfold.host.sessions import Sessions
from everfold.projections.catalog import detached_composition
from everfold.store.urls import open_store
from tests.host.kit import hello


def test_a_schema_where_attachments_came_first_takes_sessions(postgres_url: str) -> None:
    with PostgresAttachments(postgres_url) as attachments:
        kept = attachments.put(b"picture")

        with open_store(postgres_url) as store:
            sessions = Sessions(store, detached_composition())
            sessions.create("s")
            sessions.append_batch("s", [hello()])

            assert store.version("s") == 2
        assert attachments.read(kept) == b"picture"
