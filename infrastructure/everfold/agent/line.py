"""A line in which those who come pass one at a time, in the order in which they came."""

import asyncio
from collections.abc import Callable
from types import TracebackType


class Line:
    """Those who wait in one event loop, and the one who is at the front."""

    def __init__(self) -> None:
        self._places: list[Place] = []

    @property
    def is_empty(self) -> bool:
        """Whether nobody is in it, neither waiting nor at the front."""
        return not self._places

    def join(self) -> "Place":
        """Return a place behind all others; who joins must leave."""
        place = Place(self._leave)
        self._places.append(place)
        self._call_first()
        return place

    def _leave(self, place: "Place") -> None:
        if place in self._places:
            self._places.remove(place)
            self._call_first()

    def _call_first(self) -> None:
        if self._places:
            self._places[0].called.set()


class Place:
    """A place in a line; `async with` waits until it is at the front, and leaves it at the end.

    Attributes:
        called: is set when it is at the front.
    """

    def __init__(self, leaving: "Callable[[Place], None]") -> None:
        self.called = asyncio.Event()
        self._leaving = leaving

    def leave(self) -> None:
        """Let the next one pass; a second call does nothing."""
        self._leaving(self)

    async def __aenter__(self) -> "Place":
        try:
            await self.called.wait()
        except asyncio.CancelledError:
            self.leave()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.leave()
