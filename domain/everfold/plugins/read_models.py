"""What a read model is: a fold over stored events, with a checkpoint. It judges nothing and vetoes nothing.

A read model says what an application wants to know of a session. It sees events after they were
stored, so it cannot refuse one; and nothing that the model is shown depends on it. What changes
messages is a message projection, which is registered elsewhere (`everfold.session.composition`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from everfold.session.composition import Disposer
from everfold.session.errors import SessionError
from everfold.session.events import EventLike
from everfold.session.frozen import Json
from everfold.session.lossless import natural

S = TypeVar("S")


class ReadModelError(SessionError):
    """A read model cannot be used."""

    code: ClassVar[str] = "read-model"


class ReadModelStuckError(ReadModelError):
    """A read model could not fold an event; it stands before it, and the session goes on (R311)."""

    code = "read-model-stuck"

    def __init__(self, name: str, seq: int, reason: BaseException) -> None:
        super().__init__(f"read model {name!r} cannot fold seq {seq}: {reason}", seq=seq)
        self.name = name


class ReadModelDuplicateError(ReadModelError):
    """Two read models have one name."""

    code = "read-model-duplicate"


@dataclass(frozen=True, slots=True)
class ReadModel(Generic[S]):
    """A fold with a name. States are values: a fold that raises leaves the old one as it was.

    Attributes:
        name: stable; checkpoints are kept under it.
        version: raised when states are made or written differently; checkpoints of other
            versions are dropped and made anew from the log (R310).
        types: the event types that it reads; it is shown no others.
        start: the state of a log without events.
        fold: the state after one more event.
        dump, load: a state as JSON, and back.
        view: what readers get of a state, as JSON.
    """

    name: str
    version: int
    types: frozenset[str]
    start: Callable[[], S]
    fold: Callable[[S, EventLike], S]
    dump: Callable[[S], Json]
    load: Callable[[Json], S]
    view: Callable[[S], Json]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A read model's state after the events before `next_seq`."""

    name: str
    version: int
    next_seq: int
    state: Json

    def to_json(self) -> dict[str, Json]:
        """Return the checkpoint as JSON."""
        return {
            "name": self.name,
            "version": self.version,
            "nextSeq": self.next_seq,
            "state": self.state,
        }

    @classmethod
    def from_json(cls, data: Json) -> "Checkpoint | None":
        """Return the checkpoint that JSON holds, None if it holds none."""
        if not isinstance(data, Mapping):
            return None
        name, version, next_seq = (data.get(key) for key in ("name", "version", "nextSeq"))
        if not isinstance(name, str) or type(version) is not int or natural(next_seq) is None:
            return None
        return cls(name, version, int(next_seq or 0), data.get("state"))


class Reading(Generic[S]):
    """One read model of one session, as far as it has read."""

    def __init__(self, model: ReadModel[S], checkpoint: Checkpoint | None = None) -> None:
        self.model = model
        self._read = (0, model.start())
        if checkpoint is not None and _fits(checkpoint, model):
            self._read = (checkpoint.next_seq, model.load(checkpoint.state))

    @property
    def next_seq(self) -> int:
        """The event that it reads next."""
        return self._read[0]

    def read(self, events: Iterable[EventLike]) -> None:
        """Fold further events; those that were read before are passed over.

        Raises:
            ReadModelStuckError: one cannot be folded; it stays unread, so that the next call
                fails the same way.
        """
        for event in events:
            before = self._read
            if event.seq < before[0]:
                continue
            state = self._folded(before[1], event)
            # A signal handler may have read on meanwhile.
            if self._read is before:
                self._read = (event.seq + 1, state)

    def _folded(self, state: S, event: EventLike) -> S:
        if event.type not in self.model.types:
            return state
        try:
            return self.model.fold(state, event)
        except Exception as error:
            # A fold may raise anything; logs of strangers hold anything.
            raise ReadModelStuckError(self.model.name, event.seq, error) from error

    @property
    def state(self) -> S:
        """The state reached; a value."""
        return self._read[1]

    def view(self) -> Json:
        """Return what readers get."""
        return self.model.view(self.state)

    def checkpoint(self) -> Checkpoint:
        """Return what a later `Reading` goes on from."""
        model, (next_seq, state) = self.model, self._read
        return Checkpoint(model.name, model.version, next_seq, model.dump(state))


def _fits(checkpoint: Checkpoint, model: ReadModel[Any]) -> bool:
    return (checkpoint.name, checkpoint.version) == (model.name, model.version)


class ReadModels:
    """The registered read models; apart from message projections, and without any say."""

    def __init__(self, models: Iterable[ReadModel[Any]] = ()) -> None:
        self._models: dict[str, ReadModel[Any]] = {}
        for model in models:
            self.register(model)

    def register(self, model: ReadModel[Any]) -> Disposer:
        """Add a read model, and return what removes exactly it.

        Raises:
            ReadModelDuplicateError: the name is taken.
        """
        if model.name in self._models:
            raise ReadModelDuplicateError(f"there is a read model {model.name!r} already")
        self._models[model.name] = model

        def dispose() -> None:
            if self._models.get(model.name) is model:
                del self._models[model.name]

        return dispose

    def find(self, name: str) -> ReadModel[Any]:
        """Return the read model with this name.

        Raises:
            ReadModelError: there is none; the message names those that there are.
        """
        model = self._models.get(name)
        if model is None:
            known = ", ".join(sorted(self._models)) or "none"
            raise ReadModelError(f"there is no read model {name!r}; there are: {known}")
        return model

    def __iter__(self) -> Iterator[ReadModel[Any]]:
        return iter(tuple(self._models.values()))

    def __len__(self) -> int:
        return len(self._models)
