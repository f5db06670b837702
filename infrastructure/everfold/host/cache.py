"""The folded sessions that a host keeps in memory, least recently used ones dropped first."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from everfold.host.telling import Telling
from everfold.session.conversation import ConversationCache
from everfold.session.frozen import Json
from everfold.session.state import SessionState


@dataclass(slots=True)
class Entry:
    """One session in memory; everything is read and written under its lock.

    Attributes:
        state: the committed state; a value.
        first_live_seq: the seq after the events that were there when this host first saw it (R157).
        snapshot_seq: the `next_seq` of the newest snapshot known.
    """

    header: Mapping[str, Json]
    state: SessionState
    first_live_seq: int = 0
    snapshot_seq: int = 0
    conversations: ConversationCache = field(default_factory=ConversationCache)
    lock: threading.RLock = field(default_factory=threading.RLock)
    telling: Telling = field(default_factory=Telling)


class Loads(Protocol):
    """Loads the entry of a session that is not in memory."""

    def load(self, session_id: str) -> Entry: ...


class EntryCache:
    """Keeps up to `size` entries."""

    def __init__(self, size: int, loader: Loads) -> None:
        self._size = size
        self._loader = loader
        # Signal handlers may append, also amid an append.
        self._lock = threading.RLock()
        self._entries: OrderedDict[str, Entry] = OrderedDict()

    def get(self, session_id: str) -> Entry:
        """Return the entry of a session, loaded if need be; one entry for all threads."""
        with self._lock:
            entry = self._entries.pop(session_id, None)
            if entry is not None:
                return self._entries.setdefault(session_id, entry)
        loaded = self._loader.load(session_id)
        with self._lock:
            entry = self._entries.setdefault(session_id, loaded)
            self._trim()
            return entry

    def put(self, session_id: str, entry: Entry) -> None:
        """Keep the entry of a session that was just made here."""
        with self._lock:
            self._entries.pop(session_id, None)
            self._entries[session_id] = entry
            self._trim()

    def forget(self, session_id: str) -> None:
        """Drop a session's entry."""
        with self._lock:
            self._entries.pop(session_id, None)

    def _trim(self) -> None:
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)
