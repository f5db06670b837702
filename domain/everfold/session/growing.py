"""An immutable sequence that grows in constant time: the newest value owns the shared tail."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class Growing(Sequence[T], Generic[T]):
    """A sequence value; `extended` gives a longer one and leaves this one as it is.

    Values share one list and differ in length. Extending the longest of them appends in place;
    extending a shorter one (after a batch was dropped) copies first.

    Who extends in place takes the list's one token meanwhile. Another thread, or a signal handler
    amid it, finds no token and copies: nobody waits, so nobody can wait for itself.
    """

    __slots__ = ("_items", "_length", "_token")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = list(items)
        self._length = len(self._items)
        self._token = [True]

    @classmethod
    def adopt(cls, items: list[T]) -> "Growing[T]":
        """Return a sequence over `items` itself; the caller gives the list away."""
        return cls._view(items, len(items), [True])

    @classmethod
    def _view(cls, items: list[T], length: int, token: list[bool]) -> "Growing[T]":
        value = cls.__new__(cls)
        value._items = items
        value._length = length
        value._token = token
        return value

    def extended(self, more: Sequence[T]) -> "Growing[T]":
        """Return this sequence followed by `more`."""
        if not more:
            return self
        try:
            mine = self._token.pop()
        except IndexError:
            return self._copied(more)
        try:
            items = self._items
            if len(items) != self._length:
                return self._copied(more)
            items.extend(more)
            return self._view(items, len(items), self._token)
        finally:
            self._token.append(mine)

    def _copied(self, more: Sequence[T]) -> "Growing[T]":
        return self.adopt([*self._items[: self._length], *more])

    def continues(self, other: "Growing[T]") -> bool:
        """Tell whether this sequence is the other one or grew out of it; costs no comparison.

        False says nothing: equal sequences that grew apart do not continue each other.
        """
        return self._items is other._items and self._length >= other._length

    def since(self, start: int) -> list[T]:
        """Return the items from position `start` on."""
        return self._items[start : self._length]

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            if step > 0:
                return self._items[start:stop:step]
            return self._items[: self._length][index]
        if index < 0:
            index += self._length
        if not 0 <= index < self._length:
            raise IndexError(index)
        return self._items[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._items[: self._length])

    def __contains__(self, value: object) -> bool:
        return self.find(value) is not None

    def find(self, value: object) -> int | None:
        """Return the position of the first item equal to `value`, None if there is none."""
        try:
            return self._items.index(value, 0, self._length)  # type: ignore[arg-type]  # any object may be compared
        except ValueError:
            return None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Growing):
            return self._items[: self._length] == other._items[: other._length]
        return isinstance(other, (list, tuple)) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # compared by content, like a list

    def __repr__(self) -> str:
        return repr(self._items[: self._length])
