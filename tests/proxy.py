"""A proxy between a store and PostgreSQL that can lose a request or a reply; real sockets only."""

import contextlib
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from urllib.parse import parse_qsl, urlsplit

from tests.postgres import with_query

READY_AND_IDLE = b"Z\x00\x00\x00\x05I"
"""The server's word that no transaction is open: what came before it was committed or undone."""

READY_IN_TRANSACTION = b"Z\x00\x00\x00\x05T"


class Proxy:
    """Forwards connections made to `url`; after `lose_…` it cuts the one that carries the mark.

    Attributes:
        cuts: how many connections were cut because of a mark.
        holds: set as soon as a request is kept back.
    """

    def __init__(self, server_url: str) -> None:
        self._target = _address(server_url)
        # The path of a socket may have about a hundred characters, those of pytest have more.
        self._directory = tempfile.TemporaryDirectory(prefix="everfold-proxy-")
        path = Path(self._directory.name) / ".s.PGSQL.5432"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self.url = with_query(_local(server_url), host=self._directory.name)
        self.cuts = 0
        self._mark: bytes | None = None
        self._loses_reply = False
        self.holds = threading.Event()
        self._held_mark: bytes | None = None
        self._released = threading.Event()
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()

    def lose_reply_to(self, mark: bytes) -> None:
        """Let the next request that holds the mark reach the server, and drop its reply."""
        self._mark, self._loses_reply = mark, True

    def lose_request(self, mark: bytes) -> None:
        """Drop the next request that holds the mark before it reaches the server."""
        self._mark, self._loses_reply = mark, False

    def hold(self, mark: bytes) -> None:
        """Keep back the next request that holds the mark until `release`."""
        self._held_mark = mark
        self._released.clear()

    def release(self) -> None:
        """Let the request that is kept back go on."""
        self._held_mark = None
        self._released.set()

    def pass_or_hold(self, seen: bytes) -> None:
        """Return at once, or after `release` if these bytes hold the mark to be kept back."""
        mark = self._held_mark
        if mark is not None and mark in seen:
            self.holds.set()
            self._released.wait()

    def cut_all(self) -> None:
        """Cut every connection that is open now."""
        with self._lock:
            sockets, self._sockets = self._sockets, []
        for each in sockets:
            _cut(each)

    def __enter__(self) -> "Proxy":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
        _cut(self._listener)
        self.cut_all()
        self._directory.cleanup()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                family, address = self._target
                server = socket.socket(family, socket.SOCK_STREAM)
                server.connect(address)
                with self._lock:
                    self._sockets += [client, server]
                link = _Link(self, client, server)
                threading.Thread(target=link.forward_requests, daemon=True).start()
                threading.Thread(target=link.forward_replies, daemon=True).start()

    def take_mark(self, seen: bytes) -> bool:
        """Return whether the mark is in these bytes; it is found once."""
        with self._lock:
            if self._mark is None or self._mark not in seen:
                return False
            self._mark = None
            self.cuts += 1
            return True

    @property
    def loses_reply(self) -> bool:
        """Whether the reply is lost rather than the request."""
        return self._loses_reply


class _Link:
    """One client's connection and its counterpart at the server."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._swallows = threading.Event()

    def forward_requests(self) -> None:
        tail = b""
        for data in _chunks(self._client):
            if self._proxy.take_mark(tail + data):
                if not self._proxy.loses_reply:
                    break
                self._swallows.set()
            self._proxy.pass_or_hold(tail + data)
            tail = data[-200:]
            if not _send(self._server, data):
                break
        self._cut()

    def forward_replies(self) -> None:
        swallowed = b""
        for data in _chunks(self._server):
            if self._swallows.is_set():
                swallowed += data
                if READY_AND_IDLE in swallowed:
                    break
                if READY_IN_TRANSACTION in swallowed and _send(self._client, swallowed):
                    swallowed = b""
            elif not _send(self._client, data):
                break
        self._cut()

    def _cut(self) -> None:
        _cut(self._client)
        _cut(self._server)


def _chunks(source: socket.socket) -> Iterator[bytes]:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            yield data


def _send(target: socket.socket, data: bytes) -> bool:
    try:
        target.sendall(data)
    except OSError:
        return False
    return True


def _cut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


def _address(url: str) -> tuple[socket.AddressFamily, str | tuple[str, int]]:
    parts = urlsplit(url)
    host = dict(parse_qsl(parts.query)).get("host") or parts.hostname or "127.0.0.1"
    port = parts.port or 5432
    if host.startswith("/"):
        return socket.AF_UNIX, f"{host}/.s.PGSQL.{port}"
    return socket.AF_INET, (host, port)


def _local(url: str) -> str:
    """Return the URL without the server's own address, which would win over `host=`."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    return parts._replace(netloc=f"{user}@" if user else "").geturl()
