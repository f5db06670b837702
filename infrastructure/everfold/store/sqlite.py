"""The library's recorder and factory on our SQLite tables."""

from typing import NoReturn

from eventsourcing.persistence import ApplicationRecorder
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteFactory
from eventsourcing.utils import Environment

from everfold.store.recorder import StoreRecorder, no_recorder_of
from everfold.store.session_store import DatabaseSessionStore
from everfold.store.sqlite_connections import SessionSQLiteDatastore


class SessionSQLiteRecorder(StoreRecorder, SQLiteApplicationRecorder):
    """The library's recorder; its table is made by `migrate`, never here."""

    def __init__(self, store: DatabaseSessionStore, datastore: SessionSQLiteDatastore) -> None:
        super().__init__(datastore, "stored_events")
        self.store = store

    def construct_create_table_statements(self) -> list[str]:
        """Return nothing."""
        return []


class SessionSQLiteFactory(SQLiteFactory):
    """Makes the recorder of a store that is open already; reads no connection settings."""

    def __init__(
        self, env: Environment, store: DatabaseSessionStore, datastore: SessionSQLiteDatastore
    ) -> None:
        # Not that of the class between: it makes a datastore of settings of its own.
        super(SQLiteFactory, self).__init__(env)
        self.store = store
        self.datastore = datastore

    def application_recorder(self) -> ApplicationRecorder:
        """Return the recorder of the store's events."""
        assert isinstance(self.datastore, SessionSQLiteDatastore)
        return SessionSQLiteRecorder(self.store, self.datastore)

    def aggregate_recorder(self, purpose: str = "events") -> NoReturn:
        """Refuse: snapshots are saved through the store."""
        raise no_recorder_of(purpose)

    def process_recorder(self) -> NoReturn:
        """Refuse: the library's process applications miss the events of other processes."""
        raise no_recorder_of("processes")

    def close(self) -> None:
        """Close the store."""
        self.store.close()
