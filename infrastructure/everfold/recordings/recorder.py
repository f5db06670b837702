"""Recording a session while it runs: every route is wrapped, every act is noted, the log is read at the end."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from everfold.agent.agent import Agent
from everfold.host.sessions import Sessions
from everfold.llm.chunks import Chunk, Finish
from everfold.llm.failure import LlmError
from everfold.llm.route import Capabilities, LlmRequest, Prepared, Route
from everfold.llm.stream import Packer, TimedChunk
from everfold.recordings.errors import RecordingError
from everfold.recordings.normalising import Normaliser, without_paths
from everfold.recordings.recording import Act, Exchange, Recording, price_key
from everfold.session.frozen import Json
from everfold.session.ids import seq_of


@dataclass(slots=True)
class Recorder:
    """Records one session, from its first event on.

        recorder = Recorder()
        with open_profile(profile, wrap=recorder.wrap) as host:
            recorder.begin(host.sessions, session_id)
            recorder.note(Act("ask", content))
            …
            recording = recorder.recording(agent)

    Attributes:
        paths, secrets: kept out of the recording.
    """

    paths: list[str] = field(default_factory=list)
    secrets: Sequence[str] = field(default=(), repr=False)
    acts: list[Act] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    capabilities: dict[str, Json] = field(default_factory=dict)
    prices: dict[str, int] = field(default_factory=dict)
    _sessions: Sessions | None = None
    _session_id: str = ""

    def wrap(self, route: Route) -> Route:
        """Return a route that records what goes through it."""
        return RecordedRoute(self, route)

    def begin(self, sessions: Sessions, session_id: str) -> None:
        """Say which session is recorded.

        Raises:
            RecordingError: it is not new.
        """
        if sessions.load(session_id).next_seq:
            raise RecordingError(
                f"session {session_id!r} has events already; a recording begins with a new session"
            )
        self._sessions, self._session_id = sessions, session_id

    def note(self, act: Act) -> None:
        """Note what a person does, before it is done."""
        self.acts.append(act)

    def recording(
        self, agent: Agent, plugins: Mapping[str, Mapping[str, Json]], about: str = ""
    ) -> Recording:
        """Return what was recorded.

        Args:
            agent: the last one that ran the session.
            plugins: those that acted, with their settings.
        """
        sessions = self.sessions
        settings = asdict(agent.settings)
        prompt, path = settings.pop("system_prompt"), settings.pop("access_path")
        header = sessions.load(self._session_id).latest("request/header")
        tools = [] if header is None else list(header.data["header"].get("tools", []))
        names = Normaliser(self._session_id, prompt, tools, self.paths, self.secrets)
        if path is not None:
            settings["access_path"] = without_paths(path, names)
        events = names.events(event.record() for event in sessions.log(self._session_id))
        normal = _Normal(names)
        return Recording(
            about=about,
            prompt=names.plain(prompt),
            tools=without_paths(tools, names),
            settings=settings,
            plugins={name: dict(own) for name, own in plugins.items()},
            capabilities=self.capabilities,
            prices=self.prices,
            acts=[Act.from_json(without_paths(act.to_json(), names)) for act in self.acts],
            exchanges=[normal.exchange(exchange) for exchange in self.exchanges],
            events=events,
        )

    @property
    def sessions(self) -> Sessions:
        """The host of the session.

        Raises:
            RecordingError: the recording has not begun.
        """
        if self._sessions is None:
            raise RecordingError("no session is recorded: call `begin` first")
        return self._sessions

    def records(self, session_id: str) -> bool:
        """Tell whether this is the session that is recorded."""
        return self._sessions is not None and session_id == self._session_id

    def last_seq(self) -> int:
        """Return the session's last seq."""
        return seq_of(self.sessions.store.version(self._session_id))

    def now(self) -> int:
        """Return the time in milliseconds."""
        return self.sessions.means.clock()


@dataclass(slots=True)
class _Normal:
    """Normalises exchanges; what several of them hold is the same object afterwards too."""

    names: Normaliser
    _known: dict[int, Json] = field(default_factory=dict)

    def exchange(self, exchange: Exchange) -> Exchange:
        line = exchange.to_json()
        request, body = line.pop("request"), line.pop("body", None)
        plain = without_paths(line, self.names)
        header = self.names.value(request["header"])
        plain["request"] = {"header": header, "messages": self._each(request["messages"])}
        if body is not None:
            shared = {k: self._each(v) for k, v in body.items() if _is_shared(k, v)}
            rest = {k: None if k in shared else v for k, v in body.items()}
            plain["body"] = self.names.value(rest) | shared
        return Exchange.from_json(plain)

    def _each(self, values: Sequence[Json]) -> list[Json]:
        """Return normalised elements of requests, which live as long as the recorder."""
        for value in values:
            if id(value) not in self._known:
                self._known[id(value)] = self.names.value(value)
        return [self._known[id(value)] for value in values]


def _is_shared(name: str, value: Json) -> bool:
    """Tell whether a member of a body is a list that grows from request to request."""
    return isinstance(value, list) and name != "tools"


@dataclass(slots=True)
class RecordedRoute:
    """A `Route` around another one; it changes nothing."""

    recorder: Recorder
    inner: Route
    _open: list[tuple[Prepared, Exchange]] = field(default_factory=list)

    @property
    def provider(self) -> str:
        """As `Route.provider`."""
        return self.inner.provider

    def capabilities(self, model: str) -> Capabilities:
        """As `Route.capabilities`."""
        takes = self.inner.capabilities(model)
        self.recorder.capabilities[self.provider] = asdict(takes)
        return takes

    def image_tokens(self, model: str, images: Sequence[Mapping[str, Any]]) -> Sequence[int]:
        """As `Route.image_tokens`."""
        prices = self.inner.image_tokens(model, images)
        self.recorder.prices.update(zip(map(price_key, images), prices, strict=False))
        return prices

    async def prepare(self, request: LlmRequest) -> Prepared:
        """As `Route.prepare`."""
        recorder = self.recorder
        if not recorder.records(request.session_id):
            return await self.inner.prepare(request)
        exchange = Exchange(
            self.provider, recorder.last_seq(), dict(request.header), list(request.messages)
        )
        recorder.exchanges.append(exchange)
        try:
            prepared = await self.inner.prepare(request)
        except LlmError as error:
            exchange.refused = error.failure
            raise
        exchange.body = prepared.body
        exchange.image_count, exchange.image_bytes = prepared.image_count, prepared.image_bytes
        self._open.append((prepared, exchange))
        return prepared

    async def stream(self, prepared: Prepared) -> AsyncIterator[Chunk]:
        """As `Route.stream`."""
        exchange = self._exchange(prepared)
        begun, packer = self.recorder.now(), Packer()
        exchange.stream = packer.records
        chunks = self.inner.stream(prepared)
        try:
            async for chunk in chunks:
                packer.add(TimedChunk(max(self.recorder.now() - begun, 0), chunk))
                if isinstance(chunk, Finish):
                    exchange.ended = "finish"
                yield chunk
        except LlmError as error:
            exchange.ended, exchange.failure = "failure", error.failure
            raise
        finally:
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        close = getattr(self.inner, "close", None)
        if close is not None:
            await close()

    def _exchange(self, prepared: Prepared) -> Exchange:
        """Return the exchange of a request; one that nobody looks at for another session's."""
        for place, (known, exchange) in enumerate(self._open):
            if known is prepared:
                del self._open[place]
                return exchange
        return Exchange(self.provider, -1, {}, ())
