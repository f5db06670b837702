"""The library's application on a session store: save aggregates, load them, follow the log."""

from typing import cast

from eventsourcing.application import Application
from eventsourcing.persistence import InfrastructureFactory, Mapper
from eventsourcing.popo import POPOFactory
from eventsourcing.utils import Environment, EnvType

from everfold.session.errors import StoreUrlError
from everfold.store.mapper import BytesTranscoder, SessionMapper
from everfold.store.session_store import DatabaseSessionStore
from everfold.store.sqlite import SessionSQLiteFactory
from everfold.store.sqlite_backend import SqliteBackend
from everfold.store.urls import open_store

STORE = "EVERFOLD_STORE"
"""Name of the setting that holds the store's URL."""


class SessionApplication(Application[str]):
    """Saves and loads sessions as aggregates of the library.

    An aggregate has `id`, `version` and `collect_events()`, which gives `Recorded` events;
    `repository.get(id, projector_func=…)` folds them. `ApplicationSubscription` and
    `ProjectionRunner` of the library take this class as it is.

    Settings come by argument alone: the process's environment would override a class's own
    (docs/decisions/0011). There is no cache, as the library's copies the aggregate at
    each hit, and no automatic snapshot, as those may fail a save that is committed already.

    Args:
        env: the library's settings; `EVERFOLD_STORE` is the store's URL, `CIPHER_KEY` and
            `COMPRESSOR_TOPIC` encrypt and compress what is stored.
        url: the store's URL, in place of the setting.

    Raises:
        StoreUrlError: no URL is given.
    """

    name = "everfold"

    def __init__(self, env: EnvType | None = None, *, url: str | None = None) -> None:
        super().__init__({**(env or {}), **({} if url is None else {STORE: url})})

    @property
    def store(self) -> DatabaseSessionStore:
        """The store under the application."""
        return self._store

    def construct_env(self, name: str, env: EnvType | None = None) -> Environment:
        """Return the given settings; the process's environment has no say."""
        settings = {**(env or {}), "CREATE_TABLE": "n", "ORIGINATOR_ID_TYPE": "text"}
        if settings.get("CIPHER_KEY"):
            # The library's default takes twenty times as long for the same bytes.
            settings.setdefault("CIPHER_TOPIC", "eventsourcing.cryptography:AESCipher")
        return Environment(name, settings)

    def construct_factory(self, env: Environment) -> InfrastructureFactory:
        """Open the store; return the factory that makes its recorder."""
        url = env.get(STORE)
        if not url:
            raise StoreUrlError(f"give the application a store: {STORE}=sqlite:///sessions.db")
        self._mapper = POPOFactory(env).mapper(BytesTranscoder(), SessionMapper)
        assert isinstance(self._mapper, SessionMapper)
        self._store = open_store(url, mapper=self._mapper)
        return factory_of(self._store, env)

    def construct_mapper(self) -> Mapper[str]:
        """Return the mapper that the store uses too."""
        return self._mapper


def factory_of(store: DatabaseSessionStore, env: Environment) -> InfrastructureFactory:
    """Return the library's factory for an open store."""
    if isinstance(store.backend, SqliteBackend):
        sqlite = SessionSQLiteFactory(env, store, store.backend.datastore)
        return cast("InfrastructureFactory", sqlite)
    from everfold.store.postgres import SessionPostgresFactory
    from everfold.store.postgres_backend import PostgresBackend

    assert isinstance(store.backend, PostgresBackend)
    postgres = SessionPostgresFactory(env, store, store.backend.datastore)
    return cast("InfrastructureFactory", postgres)
