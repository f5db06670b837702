"""The event types and message projections in force: a value that is passed, never a global (group G)."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from everfold.session.errors import ProjectionDuplicateError
from everfold.session.projection import MessageProjection
from everfold.session.vocabulary import CORE, MESSAGE_TYPES, EventType, Role, Vocabulary

Disposer = Callable[[], None]
"""Undoes one registration; a second call does nothing."""


class Composition:
    """What is registered now; sessions that were made with it see every change at once (R112)."""

    def __init__(
        self, projections: Iterable[MessageProjection] = (), *, vocabulary: Vocabulary = CORE
    ) -> None:
        self._definitions: dict[str, MessageProjection] = {}
        self._declared: list[EventType] = []
        self._core = vocabulary
        self._known = vocabulary
        for projection in projections:
            self.register(projection)

    @property
    def definitions(self) -> Mapping[str, MessageProjection]:
        """The live map from event type to its interpreter (R181)."""
        return MappingProxyType(self._definitions)

    @property
    def vocabulary(self) -> Vocabulary:
        """The known event types: the core's and the declared ones (V4)."""
        return self._known

    def register(self, projection: MessageProjection) -> Disposer:
        """Put an interpreter in force, declare its type, and return what removes exactly it (R111).

        Raises:
            ProjectionDuplicateError: the type has an interpreter (R110), or is a message type.
        """
        if projection.type in MESSAGE_TYPES:
            raise ProjectionDuplicateError(
                f"event type {projection.type!r} makes messages and is the core's own; "
                f"plugin {projection.plugin!r} cannot interpret it"
            )
        owner = self._definitions.get(projection.type)
        if owner is not None:
            raise ProjectionDuplicateError(
                f"event type {projection.type!r} is owned by plugin {owner.plugin!r}; "
                f"plugin {projection.plugin!r} cannot register it too"
            )
        self._definitions[projection.type] = projection
        undeclare = self.declare((EventType(projection.type, Role.PROJECTION),))

        def dispose() -> None:
            del self._definitions[projection.type]
            undeclare()

        return _once(dispose)

    def declare(self, types: Iterable[EventType]) -> Disposer:
        """Make event types known, and return what makes them unknown again."""
        added = tuple(types)
        self._declared.extend(added)
        self._know()

        def withdraw() -> None:
            for declared in added:
                self._declared.remove(declared)
            self._know()

        return _once(withdraw)

    def needs_interpreter(self, type_: str) -> bool:
        """Tell whether an event of this type cannot be read without an interpreter (R100)."""
        return type_ in self._core.inventory or type_ in self._known.inventory

    def identity(self) -> str:
        """Return a short text that is equal for compositions that fold every log alike."""
        definitions = sorted(
            f"{owned.type}\n{owned.plugin}\n{owned.version}" for owned in self._definitions.values()
        )
        declared = sorted({f"{known.name}\n{known.role.value}" for known in self._declared})
        parts = (*definitions, "", *declared)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def _know(self) -> None:
        self._known = self._core.extended(self._declared)


def _once(undo: Disposer) -> Disposer:
    """Return a disposer that undoes its own registration alone, however often it is called."""
    pending = [undo]

    def dispose() -> None:
        if pending:
            pending.pop()()

    return dispose
