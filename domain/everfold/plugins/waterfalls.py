"""Waterfalls: chains of handlers, each of which answers a question or passes it on.

The one registered first is asked first. A handler that raises is named and, where the contract
says so, passed over; the question then goes on to the next.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from everfold.llm.failure import LlmError, LlmFailure
from everfold.llm.route import Capabilities
from everfold.session.access import SessionAccess
from everfold.session.composition import Disposer

Report = Callable[[str, BaseException], None]
"""Is told which plugin failed in a waterfall, and how."""

IsFailure = Callable[[BaseException], bool]
"""Says whether something raised is the handler's own failure, and not a wish to stop everything."""


def is_error(raised: BaseException) -> bool:
    """Tell whether something raised is an error of the usual kind."""
    return isinstance(raised, Exception)


Q = TypeVar("Q")
A = TypeVar("A")
H = TypeVar("H")


class Cancellation(Protocol):
    """Says whether somebody asked to stop."""

    @property
    def is_set(self) -> bool:
        """Whether it was asked."""
        ...


@dataclass(frozen=True, slots=True)
class RequestErrorQuestion:
    """A request of an agent failed; what now? (R261)

    Attributes:
        attempt: how many attempts this step has made, this one included.
        retries_left: what is left of the provider retry budget.
    """

    session: SessionAccess
    turn: int
    step: int
    provider: str
    failure: LlmFailure
    attempt: int
    retries_left: int
    cancellation: Cancellation


@dataclass(frozen=True, slots=True)
class Retry:
    """Send the request again, derived anew.

    Attributes:
        spends_budget: whether it counts as a provider retry and is logged as `llm/retry`;
            a recovery that changed the history does not (R265).
        delay_ms: how long to wait before.
    """

    spends_budget: bool = False
    delay_ms: int = 0


RequestErrorAnswer = Retry | None
"""None: nothing recovers, the turn ends with the failure (R268)."""

RequestErrorHandler = Callable[
    [RequestErrorQuestion, Callable[[], Awaitable[RequestErrorAnswer]]],
    Awaitable[RequestErrorAnswer],
]


@dataclass(frozen=True, slots=True)
class SummaryErrorQuestion:
    """A summary request failed; did somebody shrink the selected events? (R271)

    Attributes:
        selection: seqs of the selected nodes, in surface order.
        error: what was raised; handlers look at real `LlmError`s alone (R272).
    """

    session: SessionAccess
    selection: tuple[int, ...]
    error: BaseException
    cancellation: Cancellation

    @property
    def failure(self) -> LlmFailure | None:
        """The failure that the error carries, None for other errors."""
        return self.error.failure if isinstance(self.error, LlmError) else None


SummaryErrorHandler = Callable[[SummaryErrorQuestion, Callable[[], bool]], bool]
"""Synchronous: the stability check and the decision stand side by side (R276).

Called beside the event loop, in an `aside` of the session.
"""


@dataclass(frozen=True, slots=True)
class PreStepQuestion:
    """A step is about to build its request.

    Attributes:
        kind: why; a retry after a failed attempt asks again.
        model: the model that will be asked, on `provider`.
        capabilities: what that model takes there; None if unknown.
    """

    session: SessionAccess
    turn: int
    step: int
    provider: str
    model: str
    kind: Literal["first", "retry"]
    cancellation: Cancellation
    capabilities: Capabilities | None = None


@dataclass(frozen=True, slots=True)
class PreStepAnswer:
    """What the handlers before a step want.

    Attributes:
        starts_series: whether the next request starts a new series (R197).
    """

    starts_series: bool = False


PreStepHandler = Callable[
    [PreStepQuestion, Callable[[], Awaitable[PreStepAnswer]]], Awaitable[PreStepAnswer]
]


@dataclass(frozen=True, slots=True)
class _Named(Generic[H]):
    plugin: str
    handler: H


class Chain(Generic[H]):
    """The handlers of one waterfall, in the order in which they are asked.

    Args:
        answers: the types of what a handler may answer.
    """

    def __init__(self, *answers: type) -> None:
        self._answers = answers
        self._handlers: list[_Named[H]] = []

    def register(self, plugin: str, handler: H) -> Disposer:
        """Add a handler at the end, and return what removes exactly it."""
        named = _Named(plugin, handler)
        self._handlers.append(named)

        def dispose() -> None:
            self._handlers = [other for other in self._handlers if other is not named]

        return dispose

    def handlers(self) -> tuple[tuple[str, H], ...]:
        """Return plugin and handler of each, as registered now."""
        return tuple((named.plugin, named.handler) for named in self._handlers)

    def checked(self, answer: A) -> A:
        """Return a handler's answer.

        Raises:
            TypeError: it is none of this waterfall.
        """
        if isinstance(answer, self._answers):
            return answer
        kinds = " or ".join(kind.__name__ for kind in self._answers)
        raise TypeError(f"it answered {answer!r:.100}, which is no {kinds}")


async def ask(
    chain: Chain[Callable[[Q, Callable[[], Awaitable[A]]], Awaitable[A]]],
    question: Q,
    default: A,
    report: Report,
    is_failure: IsFailure = is_error,
) -> A:
    """Ask the handlers in turn; the default stands where nobody answers.

    A handler that raises a failure, or answers what is no answer, is reported with its plugin's name
    and passed over. Those after it are asked once, also if it had asked them before it failed.
    """
    handlers = chain.handlers()

    async def ask_from(position: int) -> A:
        if position == len(handlers):
            return default
        plugin, handler = handlers[position]
        passed_on: list[A] = []

        async def ask_next() -> A:
            passed_on.append(await ask_from(position + 1))
            return passed_on[-1]

        try:
            return chain.checked(await handler(question, ask_next))
        except BaseException as error:
            # A plugin may raise anything; it must not take the turn down.
            if not is_failure(error):
                raise
            report(plugin, error)
            return passed_on[-1] if passed_on else await ask_next()

    return await ask_from(0)


def ask_now(chain: Chain[Callable[[Q, Callable[[], A]], A]], question: Q, default: A) -> A:
    """Ask synchronous handlers in turn; what one raises is raised, with its plugin named."""
    handlers = chain.handlers()

    def ask_from(position: int) -> A:
        if position == len(handlers):
            return default
        plugin, handler = handlers[position]
        try:
            return chain.checked(handler(question, lambda: ask_from(position + 1)))
        except Exception as error:
            error.add_note(f"raised by plugin {plugin!r} in a waterfall")
            raise

    return ask_from(0)


class Waterfalls:
    """The chains that plugins may join."""

    def __init__(self) -> None:
        self.request_error: Chain[RequestErrorHandler] = Chain(Retry, type(None))
        self.summary_error: Chain[SummaryErrorHandler] = Chain(bool)
        self.pre_step: Chain[PreStepHandler] = Chain(PreStepAnswer)
