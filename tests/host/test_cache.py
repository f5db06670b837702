"""How many sessions a host keeps in memory."""

from everfold.host.cache import Entry, EntryCache
from everfold.session.state import SessionState


class Loading:
    """Loads empty sessions, and counts which."""

    def __init__(self) -> None:
        self.loaded: list[str] = []

    def load(self, session_id: str) -> Entry:
        self.loaded.append(session_id)
        return made(session_id)


def made(session_id: str) -> Entry:
    return Entry({"id": session_id}, SessionState.empty())


def test_sessions_that_were_just_made_push_the_oldest_out_too() -> None:
    loading = Loading()
    cache = EntryCache(2, loading)
    for name in ("a", "b", "c"):
        cache.put(name, made(name))

    for name in ("b", "c", "a"):
        cache.get(name)

    assert loading.loaded == ["a"]


def test_the_least_recently_used_session_goes_first() -> None:
    loading = Loading()
    cache = EntryCache(2, loading)
    for name in ("a", "b", "a", "c"):
        cache.get(name)

    cache.get("a")
    cache.get("b")

    assert loading.loaded == ["a", "b", "c", "b"]
