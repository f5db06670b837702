"""The library's recorder and factory on our PostgreSQL tables."""

from types import TracebackType
from typing import NoReturn, Self

from eventsourcing.persistence import ApplicationRecorder
from eventsourcing.postgres import (
    BasePostgresFactory,
    PostgresApplicationRecorder,
    PostgresFactory,
)
from eventsourcing.utils import Environment

from everfold.store.postgres_connections import SessionPostgresDatastore
from everfold.store.recorder import StoreRecorder, no_recorder_of
from everfold.store.session_store import DatabaseSessionStore


class SessionPostgresRecorder(StoreRecorder, PostgresApplicationRecorder):
    """The library's recorder; its tables and functions are made by `migrate`, never here.

    It never defines the library's insert function, which every start would replace, which loses
    events under followers, and which two tables of one schema would share (docs/decisions/0011).
    """

    def __init__(self, store: DatabaseSessionStore, datastore: SessionPostgresDatastore) -> None:
        super().__init__(datastore, events_table_name="stored_events")
        self.store = store
        self.sql_create_statements = []
        self.channel_name = datastore.settings.channel

    def max_notification_id(self) -> int | None:
        """Return the last position, None if nothing is stored."""
        return self.last_position() or None


class SessionPostgresFactory(PostgresFactory):
    """Makes the recorder of a store that is open already; reads no connection settings."""

    def __init__(
        self, env: Environment, store: DatabaseSessionStore, datastore: SessionPostgresDatastore
    ) -> None:
        # Not that of the class between: it makes a datastore of settings of its own.
        super(BasePostgresFactory, self).__init__(env)
        self.store = store
        self.datastore = datastore

    def application_recorder(self) -> ApplicationRecorder:
        """Return the recorder of the store's events."""
        assert isinstance(self.datastore, SessionPostgresDatastore)
        return SessionPostgresRecorder(self.store, self.datastore)

    def aggregate_recorder(self, purpose: str = "events") -> NoReturn:
        """Refuse: snapshots are saved through the store."""
        raise no_recorder_of(purpose)

    def process_recorder(self) -> NoReturn:
        """Refuse: the library's process applications miss the events of other processes."""
        raise no_recorder_of("processes")

    def __enter__(self) -> Self:
        """Return the factory; the store is open already."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        """Close the store."""
        self.close()

    def close(self) -> None:
        """Close the store."""
        self.store.close()
