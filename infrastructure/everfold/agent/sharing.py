"""Which agents use which routes in an event loop, so that the last of them hangs up."""

import asyncio
import threading
from collections.abc import Iterable
from weakref import WeakKeyDictionary, WeakSet

from everfold.llm.route import Route

_Users = dict[int, WeakSet[object]]
"""By the identity of a route, which each of its users keeps alive."""

_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _Users] = WeakKeyDictionary()
_lock = threading.Lock()


def use(user: object, routes: Iterable[Route]) -> None:
    """Note that somebody uses routes in the running event loop; who is collected uses none."""
    users = _users()
    for route in routes:
        users.setdefault(id(route), WeakSet()).add(user)


def release(user: object, routes: Iterable[Route]) -> list[Route]:
    """Note that somebody uses routes no more; return those that nobody else uses in this loop."""
    users, free = _users(), []
    for route in routes:
        others = users.get(id(route), WeakSet())
        others.discard(user)
        if not others:
            users.pop(id(route), None)
            free.append(route)
    return free


def _users() -> _Users:
    """Return the users in the running loop, which alone changes them."""
    with _lock:
        return _by_loop.setdefault(asyncio.get_running_loop(), {})
