"""The agent: a session, a model and tools; `ask` puts something to it and returns what became of it."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import replace
from types import TracebackType

from everfold.agent.cancelling import ProgramEndError, TurnCancellation, start
from everfold.agent.content import AdmitImages
from everfold.agent.errors import AgentClosedError, TurnOpenError
from everfold.agent.inbox import Target
from everfold.agent.inputs import USER, Given, Input, Inputs
from everfold.agent.line import Line, Place
from everfold.agent.log import OwnedTurn, SessionLog, Watcher
from everfold.agent.loop import Loop, routes_by_name, tools_by_name
from everfold.agent.opening import open_turn
from everfold.agent.results import TurnResult, find_turn, read_turn
from everfold.agent.settings import AgentSettings, ModelSettings
from everfold.agent.sharing import release, use
from everfold.agent.streaming import Live, Queueing, Stored
from everfold.agent.tools import Tool
from everfold.agent.turn import TurnRun
from everfold.host.access import finished
from everfold.host.sessions import Sessions
from everfold.llm.retrying import Jitter
from everfold.llm.route import Route, hang_up
from everfold.plugins.waterfalls import Waterfalls
from everfold.session.frozen import Json
from everfold.session.session import Session


class Agent:
    """Runs one session with a model and tools. For one event loop; several tasks may use it.

        agent = Agent(sessions, session.id, route, AgentSettings(ModelSettings("p", "m")))
        result = await agent.ask("hello")
        await agent.close()

    Leave its `async with` block, or call `close`, when done.

    Args:
        session: its id, or what `create` or `load` returned.
        routes: the way to the provider, or several; `settings.model.provider` names one of them.
        tools: functions, or what `everfold.agent.tools.tool` made of them.
        waterfalls: the chains that plugins joined; without it nobody omits images or summarises.
        admit_images: stores images that users and tools give; without it images are refused.
        takes_over: whether to close what another process left open; only right if that process
            is gone, or is to be stopped (group X).

    Raises:
        SessionNotFoundError, IdError: there is no such session.
        AgentError: there is no route to the model's provider, or a name stands for two.
        PayloadError, AccessPathError, ToolDefinitionError: the settings or a tool cannot be used.
    """

    def __init__(
        self,
        sessions: Sessions,
        session: str | Session,
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
        self.session_id = session.id if isinstance(session, Session) else session
        self._log = SessionLog(sessions, self.session_id)
        self._loop = Loop(
            log=self._log,
            settings=settings,
            routes=routes_by_name(routes),
            tools=tools_by_name(tools),
            waterfalls=Waterfalls() if waterfalls is None else waterfalls,
            admit=admit_images,
            jitter=jitter,
        )
        self._inputs = Inputs(self._log, admit_images)
        self._takes_over = takes_over
        self._is_attached = False
        self._is_closed = False
        self._owned: OwnedTurn | None = None
        self._cancellation: TurnCancellation | None = None
        self._line, self._turns = Line(), Line()
        self._loop.check(settings)
        # An unknown session is refused here, and not by the first `ask`.
        sessions.header(self.session_id)

    @property
    def settings(self) -> AgentSettings:
        """What the agent is set to."""
        return self._loop.settings

    def use(
        self,
        *,
        model: ModelSettings | None = None,
        system_prompt: str | None = None,
        access_path: str | None = None,
    ) -> None:
        """Change model, prompt, or where tools read attachments, from the next request on.

        Raises:
            AgentError: there is no route to the model's provider.
            PayloadError: the settings make no request header.
            AccessPathError: the access path leads to no attachment.
        """
        settings = self._loop.settings
        changed = replace(
            settings,
            model=settings.model if model is None else model,
            system_prompt=settings.system_prompt if system_prompt is None else system_prompt,
            access_path=settings.access_path if access_path is None else access_path,
        )
        self._loop.check(changed)
        self._loop.settings = changed

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
        """Put an input to the model, and return what became of it.

        Calls are stored in the order in which they were made, also those of `queue` and `stream`.
        It opens a turn at once; it is queued if something waits already, which comes first, and if
        it has a key. If the asking task is cancelled, the turn is cancelled, closed in the log, and
        only then is the cancellation passed on. An input that no turn has taken yet is taken back
        then, unless it has a key: with that it can be asked again.

        Args:
            content: text, or texts, images and content blocks.
            key: the caller's id of this input; asking twice with it runs one turn (B10).
            source: who speaks; `{"kind": "user"}` are a person's own words.

        Raises:
            InputError: the content cannot be put to a model; nothing was stored.
            TurnOpenError: another process runs a turn; the input is taken back, unless it has a
                key: then it stays queued, which the error says (`kept`).
            AgentClosedError: the agent was closed; likewise.
            TakenOverError: another process took this turn over.
            SessionError: the store failed.
        """
        return await self._ask(self._line.join(), content, key, source)

    async def _ask(
        self, place: Place, content: Input, key: str | None, source: Mapping[str, Json]
    ) -> TurnResult:
        """Ask, as `ask` does; the place in the line is left as soon as the input is stored."""
        async with place:
            self._check_open()
            given = await self._inputs.given(content, key, source)
            owned = None
            if key is None and self._turns.is_empty:
                async with self._turns.join():
                    await self.attach()
                    owned = await self._run_next(given, place.leave)
            if owned is None:
                seq = await self._inputs.put_shielded(given)
                place.leave()
                return await self._answered(given, seq)
        return await self._result(read_turn, owned.start_seq)

    async def _answered(self, given: Given, seq: int) -> TurnResult:
        """Run turns until a queued input was answered, and return what became of it."""
        try:
            async with self._turns.join():
                await self._until_answered(given)
        except asyncio.CancelledError:
            await self._inputs.take_back(given)
            raise
        result = await self._result(find_turn, given.message_id, seq)
        if result.kind == "open":
            raise TurnOpenError(self.session_id, result.turn, result.start_seq, "taken")
        return result

    async def stream(
        self, content: Input, *, key: str | None = None, source: Mapping[str, Json] = USER
    ) -> AsyncGenerator[Live | Stored, None]:
        """Ask, and yield pieces of answers and stored events as they come.

        Leaving the iteration early cancels the turn. Inside `contextlib.aclosing(…)` that is done,
        and the turn closed in the log, when the block is left; a `break` alone leaves it to the
        event loop, which comes to it some time later.

        Raises:
            as `ask`
        """
        items: asyncio.Queue[Live | Stored | None] = asyncio.Queue()
        leave = self.watch(Queueing(items))
        place = self._line.join()
        asking = start(self._ask(place, content, key, source), "everfold ask")
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
            place.leave()

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
        async with self._line.join():
            self._check_open()
            given = await self._inputs.given(content, key, source)
            await self._inputs.put(given, target)
        return given.message_id

    async def run_queued(self) -> list[TurnResult]:
        """Run a turn for each input that waits, and return what became of them."""
        results = []
        async with self._turns.join():
            await self.attach()
            while (owned := await self._run_next()) is not None:
                results.append(await self._result(read_turn, owned.start_seq))
        return results

    async def _result(self, read: Callable[..., TurnResult], *where: object) -> TurnResult:
        """Return what became of a turn; it also says whether a failure could be recovered here."""
        result = await asyncio.to_thread(read, self.sessions, self.session_id, *where)
        return replace(result, has_recovery=bool(self._loop.waterfalls.request_error.handlers()))

    async def _until_answered(self, given: Given) -> None:
        try:
            await self.attach()
            while await self._inputs.waits(given.message_id):
                await self._run_next()
        except AgentClosedError:
            await self._inputs.take_back(given)
            raise
        except TurnOpenError as error:
            if given.key is not None:
                raise TurnOpenError(
                    self.session_id, error.turn, error.start_seq, "queued"
                ) from error
            await self._inputs.take_back(given)
            raise

    # Turns.

    async def attach(self) -> None:
        """Take the session up: its state is the one that later requests are compared with (R198).

        Done by the first `ask`, unless it was called before.

        Raises:
            SessionError: there is no such session, or it cannot be read here.
        """
        self._check_open()
        use(self, self._loop.routes.values())
        if not self._is_attached:
            session = await (self._resume() if self._takes_over else self._log.load())
            await self._inputs.disown(session)
            self._loop.generation = session.content_generation
            self._is_attached = True
            return
        session = await self._log.load()
        if self._owned is not None and self._owned.is_open_in(session):
            # A failure of the store kept this very agent from closing its turn.
            await self._resume()

    async def _resume(self) -> Session:
        # A plan is made on what the host has in memory: bring that up to date first.
        await self._log.load()
        return await asyncio.to_thread(self.sessions.resume, self.session_id)

    async def _run_next(
        self, given: Given | None = None, opened: Callable[[], None] = lambda: None
    ) -> OwnedTurn | None:
        """Run a turn for the next input in a task of its own, which nobody cuts off midway.

        Args:
            given: as `open_turn`.
            opened: is called when the turn is open, and its input stored.
        """
        self._check_open()
        self._cancellation = TurnCancellation()
        task = start(self._turn(self._cancellation, given, opened), "everfold turn")
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._cancellation.set()
            await finished(task)
            raise
        except ProgramEndError as end:
            # Here, in the caller's own task: the turn is closed.
            raise end.raised from None
        finally:
            self._cancellation = None

    async def _turn(
        self, cancellation: TurnCancellation, given: Given | None, opened: Callable[[], None]
    ) -> OwnedTurn | None:
        owned = await open_turn(self._loop, given)
        if owned is not None:
            opened()
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
        """Cancel what runs, wait until it is closed in the log, and take no more input.

        The connections of routes that no other agent uses in the running event loop are closed too.
        """
        self._is_closed = True
        self.cancel("disposed")
        async with self._turns.join():
            await hang_up(release(self, self._loop.routes.values()))

    async def __aenter__(self) -> "Agent":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def hang_up(self) -> None:
        """Close the connections that the agent's routes keep open in the running event loop.

        For who ends that loop next and goes on with the agent in another one. Other agents in this
        loop may be using the same routes; `close` leaves those alone.
        """
        await hang_up(self._loop.routes.values())

    def _check_open(self) -> None:
        if self._is_closed:
            raise AgentClosedError(f"the agent of session {self.session_id!r} was closed")
