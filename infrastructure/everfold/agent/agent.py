"""The agent: a session, a model and tools; `ask` puts something to it and returns what became of it."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from everfold.agent.cancelling import TurnCancellation, finished, start
from everfold.agent.content import AdmitImages, Content, Part, content_of
from everfold.agent.errors import AgentClosedError, AgentError, InputError, TurnOpenError
from everfold.agent.inbox import Target, disowned, insertion, withdrawal
from everfold.agent.log import OwnedTurn, SessionLog, Watcher
from everfold.agent.loop import Loop
from everfold.agent.opening import open_turn
from everfold.agent.results import TurnResult, find_turn, read_turn
from everfold.agent.retrying import Jitter
from everfold.agent.settings import AgentSettings, ModelSettings
from everfold.agent.tools import Tool, tool
from everfold.agent.turn import TurnRun
from everfold.agent.wishes import repaired, user_message
from everfold.host.sessions import Sessions
from everfold.llm.chunks import Chunk
from everfold.llm.route import Route
from everfold.plugins.waterfalls import Waterfalls
from everfold.session.deciding import AppendEvent, checked_event_id
from everfold.session.errors import EventIdReusedError, SessionError
from everfold.session.events import Recorded
from everfold.session.frozen import Json, json_equal
from everfold.session.lossless import encode
from everfold.session.payload import check_message, check_payload
from everfold.session.session import Session

USER: Mapping[str, Json] = {"kind": "user"}


@dataclass(frozen=True, slots=True)
class Live:
    """A piece of an answer, while it arrives; it is not stored and has no seq (M3)."""

    turn: int
    step: int
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Stored:
    """An event that is stored; a reader that lost its place goes on after its seq."""

    event: Recorded


Input = str | Sequence[Part]


class Agent:
    """Runs one session with a model and tools. For one event loop; several tasks may use it.

        agent = Agent(sessions, session.id, route, AgentSettings(ModelSettings("p", "m")))
        result = await agent.ask("hello")

    Args:
        routes: the way to the provider, or several; `settings.model.provider` names one of them.
        tools: functions, or what `everfold.agent.tools.tool` made of them.
        waterfalls: the chains that plugins joined.
        admit_images: stores images that users and tools give; without it images are refused.
        takes_over: whether to close what another process left open; only right if that process
            is gone, or is to be stopped (group X).
    """

    def __init__(
        self,
        sessions: Sessions,
        session_id: str,
        routes: Route | Iterable[Route],
        settings: AgentSettings,
        *,
        tools: Iterable[Tool | Callable[..., object]] = (),
        waterfalls: Waterfalls | None = None,
        admit_images: AdmitImages | None = None,
        takes_over: bool = False,
        jitter: Jitter = random.random,
    ) -> None:
        self.sessions = sessions
        self.session_id = session_id
        self._log = SessionLog(sessions, session_id)
        self._loop = Loop(
            log=self._log,
            settings=settings,
            routes=_named(routes),
            tools=_tools(tools),
            waterfalls=Waterfalls() if waterfalls is None else waterfalls,
            admit=admit_images,
            jitter=jitter,
        )
        self._takes_over = takes_over
        self._is_attached = False
        self._is_closed = False
        self._owned: OwnedTurn | None = None
        self._cancellation: TurnCancellation | None = None
        self._turns = asyncio.Lock()
        _check(self._loop, settings.model)

    @property
    def settings(self) -> AgentSettings:
        """What the agent is set to."""
        return self._loop.settings

    def use(self, *, model: ModelSettings | None = None, system_prompt: str | None = None) -> None:
        """Change model or prompt from the next request on.

        Raises:
            AgentError: there is no route to the model's provider.
            PayloadError: the settings make no request header.
        """
        if model is not None:
            _check(self._loop, model)
            self._loop.settings = replace(self._loop.settings, model=model)
        if system_prompt is not None:
            self._loop.settings = replace(self._loop.settings, system_prompt=system_prompt)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Have a watcher told of chunks and stored events; returns what ends it."""
        self._log.watchers.append(watcher)

        def leave() -> None:
            if watcher in self._log.watchers:
                self._log.watchers.remove(watcher)

        return leave

    # Putting something to the model.

    async def ask(
        self, content: Input, *, key: str | None = None, source: Mapping[str, Json] = USER
    ) -> TurnResult:
        """Queue an input, run turns until it was answered, and return what became of it.

        Inputs that wait already come first. If the asking task is cancelled, the turn is
        cancelled, closed in the log, and only then is the cancellation passed on.

        Args:
            content: text, or texts, images and content blocks.
            key: the caller's id of this input; asking twice with it runs one turn (B10).
            source: who speaks; `{"kind": "user"}` are a person's own words.

        Raises:
            InputError: the content cannot be put to a model; nothing was stored.
            TurnOpenError: another process runs a turn; the input is taken back, unless it has a key.
            TakenOverError: another process took this turn over.
            SessionError: the store failed.
        """
        message_id, seq = await self._queue(content, "next-turn", key, source)
        async with self._turns:
            await self.attach()
            try:
                while await self._waits(message_id):
                    await self._run_next()
            except TurnOpenError:
                if key is None:
                    await self._withdraw(message_id)
                raise
        result = await asyncio.to_thread(find_turn, self.sessions, self.session_id, message_id, seq)
        if result.kind == "open":
            raise TurnOpenError(self.session_id, result.turn, result.start_seq)
        return result

    async def stream(
        self, content: Input, *, key: str | None = None, source: Mapping[str, Json] = USER
    ) -> AsyncGenerator[Live | Stored, None]:
        """Ask, and yield pieces of answers and stored events as they come.

        Leaving the iteration early cancels the turn.

        Raises:
            as `ask`
        """
        items: asyncio.Queue[Live | Stored | None] = asyncio.Queue()
        leave = self.watch(_Queueing(items))
        asking = start(self.ask(content, key=key, source=source), "everfold ask")
        asking.add_done_callback(lambda _: items.put_nowait(None))
        try:
            while (item := await items.get()) is not None:
                yield item
            asking.result()
        finally:
            leave()
            if not asking.done():
                asking.cancel()
                await finished(asking)

    async def queue(
        self,
        content: Input,
        *,
        target: Target = "next-turn",
        key: str | None = None,
        source: Mapping[str, Json] = USER,
    ) -> str:
        """Store an input for later and return its message id.

        Args:
            target: `next-turn` opens a turn of its own; `next-step` joins the next step of the
                turn that runs, or of the next one.

        Raises:
            InputError, SessionError: as `ask`.
        """
        return (await self._queue(content, target, key, source))[0]

    async def run_queued(self) -> list[TurnResult]:
        """Run a turn for each input that waits, and return what became of them."""
        results = []
        async with self._turns:
            await self.attach()
            while (owned := await self._run_next()) is not None:
                results.append(
                    await asyncio.to_thread(
                        read_turn, self.sessions, self.session_id, owned.start_seq
                    )
                )
        return results

    async def _queue(
        self, content: Input, target: Target, key: str | None, source: Mapping[str, Json]
    ) -> tuple[str, int]:
        """Store an input; return its message id, and a seq at or before its queueing."""
        self._check_open()
        parts: Sequence[Part] = (content,) if isinstance(content, str) else tuple(content)
        checked = await asyncio.to_thread(self._content, parts)
        message_id = self._log.new_id() if key is None else f"input-{checked_event_id(key)}"
        message = user_message(message_id, checked.blocks, source)
        fault = check_message(message, "user")
        if fault is not None:
            raise InputError(f"the input makes no message: {fault}")
        first = 0

        def plan(session: Session) -> list[AppendEvent]:
            nonlocal first
            earlier = self.sessions.store.find_append(self.session_id, key) if key else ()
            first = earlier[0].seq if earlier else session.next_seq
            if key and earlier:
                _check_same(self.session_id, key, earlier, message)
                return []
            inbox = self._log.inbox.at(session)
            wish = insertion(inbox, target, message, event_id=key)
            return [wish, *repaired({}, message_id, checked.repairs)]

        await self._log.load()
        await self._log.append(plan)
        return message_id, first

    def _content(self, parts: Sequence[Part]) -> Content:
        try:
            content = content_of(parts, self._loop.admit)
        except SessionError:
            raise
        except (ValueError, TypeError) as error:
            raise InputError(f"the input cannot be used: {error}") from error
        if not content.blocks:
            raise InputError("the input is empty")
        return content

    # Turns.

    async def attach(self) -> None:
        """Take the session up: its state is the one that later requests are compared with (R198).

        Done by the first `ask`, unless it was called before.

        Raises:
            SessionError: there is no such session, or it cannot be read here.
        """
        self._check_open()
        if not self._is_attached:
            session = await (self._resume() if self._takes_over else self._log.load())
            await self._disown(session)
            self._loop.generation = session.content_generation
            self._is_attached = True
            return
        session = await self._log.load()
        if self._owned is not None and self._owned.is_open_in(session):
            # A failure of the store kept this very agent from closing its turn.
            await self._resume()

    async def _disown(self, session: Session) -> None:
        """Cancel what a fork inherited in its queues: it was said to the parent (C7)."""
        reader = self._log.inbox
        inherited = await asyncio.to_thread(reader.inherited, session)
        if inherited.next_turn or inherited.next_step:
            await self._log.append(lambda session: disowned(inherited, reader.at(session)))

    async def _resume(self) -> Session:
        # A plan is made on what the host has in memory: bring that up to date first.
        await self._log.load()
        return await asyncio.to_thread(self.sessions.resume, self.session_id)

    async def _withdraw(self, message_id: str) -> None:
        """Take an input back that no turn has taken yet."""
        reader = self._log.inbox
        await self._log.append(lambda session: withdrawal(reader.at(session), message_id))

    async def _waits(self, message_id: str) -> bool:
        session = await self._log.load()
        inbox = await asyncio.to_thread(self._log.inbox.at, session)
        return any(item.get("id") == message_id for item in inbox.next_turn)

    async def _run_next(self) -> OwnedTurn | None:
        """Run a turn for the first waiting input in a task of its own, which nobody cuts off midway."""
        self._check_open()
        self._cancellation = TurnCancellation()
        task = start(self._turn(self._cancellation), "everfold turn")
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._cancellation.set()
            await finished(task)
            raise
        finally:
            self._cancellation = None

    async def _turn(self, cancellation: TurnCancellation) -> OwnedTurn | None:
        owned = await open_turn(self._loop)
        if owned is not None:
            self._owned = owned
            await TurnRun(self._loop, owned, cancellation).run()
        return owned

    def cancel(self, kind: str = "user") -> bool:
        """Stop the running turn, not the session; what was delivered is kept.

        Call it in the event loop's thread; `ask` returns when the turn is closed.

        Returns:
            whether a turn was running.
        """
        if self._cancellation is None:
            return False
        self._cancellation.set(kind)
        return True

    async def close(self) -> None:
        """Cancel what runs, wait until it is closed in the log, and take no more input."""
        self._is_closed = True
        self.cancel("disposed")
        async with self._turns:
            pass

    def _check_open(self) -> None:
        if self._is_closed:
            raise AgentClosedError(f"the agent of session {self.session_id!r} was closed")


@dataclass(frozen=True, slots=True)
class _Queueing:
    """A watcher that hands everything to an iteration."""

    items: "asyncio.Queue[Live | Stored | None]"

    def on_chunk(self, turn: int, step: int, chunk: Chunk) -> None:
        self.items.put_nowait(Live(turn, step, chunk))

    def on_events(self, events: Sequence[Recorded]) -> None:
        for event in events:
            self.items.put_nowait(Stored(event))


def _named(routes: Route | Iterable[Route]) -> dict[str, Route]:
    several = routes if isinstance(routes, Iterable) else (routes,)
    named: dict[str, Route] = {}
    for route in several:
        if route.provider in named:
            raise AgentError(f"two routes are called {route.provider!r}")
        named[route.provider] = route
    return named


def _tools(tools: Iterable[Tool | Callable[..., object]]) -> dict[str, Tool]:
    named: dict[str, Tool] = {}
    for given in tools:
        made = given if isinstance(given, Tool) else tool(given)
        if made.name in named:
            raise AgentError(f"two tools are called {made.name!r}")
        named[made.name] = made
    return named


def _check(loop: Loop, model: ModelSettings) -> None:
    """Refuse settings that no request could be made with, before a turn is opened for them."""
    loop.route_to(model.provider)
    definitions = [tool.definition() for tool in loop.tools.values()]
    _, header = encode(model.header(definitions), "header")
    check_payload("request/header", {"header": header, "reason": "initial"}, 0)


def _check_same(session_id: str, key: str, earlier: Sequence[Recorded], message: Json) -> None:
    """Refuse a key that was used for other content."""
    inserted = earlier[0].data.get("inserted", [])
    if len(inserted) != 1 or not json_equal(inserted[0].get("content"), message["content"]):
        raise EventIdReusedError(session_id, key)
