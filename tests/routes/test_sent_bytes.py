"""What a route sends of a conversation that goes on, byte for byte, wherever the history turns.

The real SDK clients hand their bytes to a transport of the tests, so that many requests take little
time; `talking` compares the same with what a server receives.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everfold.attachments.filesystem import FileAttachments
from everfold.attachments.versions import RequestVersions
from everfold.llm.chunks import Finish, TextDelta
from everfold.llm.route import LlmRequest, Prepared, Route, hang_up
from everfold.routes.anthropic_messages import AnthropicMessagesRoute, AnthropicSettings
from everfold.routes.anthropic_replay import replay_state, thinking_entry
from everfold.routes.openai_chat import ChatSettings, OpenAiChatRoute
from everfold.routes.openai_responses import OpenAiResponsesRoute, ResponsesSettings
from everfold.routes.settings import settings_from
from everfold.session.growing import Growing
from tests.providers.in_process import InProcess
from tests.providers.pictures import img
from tests.routes.kit import (
    LOOK,
    Json,
    assistant,
    call,
    offloaded,
    picture,
    request,
    result,
    system,
    text,
    user,
)
from tests.routes.wires import KEY

BASE = {"base_url": "http://127.0.0.1:9/v1", "api_key": KEY}
EXTRA = {"metadata": {"user_id": "u"}, "stream": False}
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "chat": {"reasoning_back": "reasoning_content", "has_cache_key": True, "extra_body": EXTRA},
    "messages": {"extra_body": EXTRA},
    "responses": {"has_files": False},
    "files": {},
}


class AllUploaded:
    """An `UploadBook` of an account that holds every picture."""

    def find(self, account: str, version_id: str) -> str:  # as `UploadBook` has it
        return f"file-{version_id[7:19]}"

    def note(self, account: str, version_id: str, file_id: str) -> str:  # as `UploadBook` has it
        return file_id

    def forget(self, account: str, file_id: str) -> None:
        """Hold on to it."""


@dataclass
class Line:
    """A route, and the transport that takes what it sends."""

    wire: str
    provider: str
    versions: RequestVersions
    transports: list[InProcess] = field(default_factory=list)
    route: Route = field(init=False)

    def __post_init__(self) -> None:
        table = {"provider": self.provider, **BASE, **OPTIONS[self.wire]}
        match self.wire:
            case "chat":
                given_: Any = settings_from(ChatSettings, table)
                self.route = OpenAiChatRoute(given_, self.versions, transport=self._transport)
            case "messages":
                given_ = settings_from(AnthropicSettings, table)
                self.route = AnthropicMessagesRoute(
                    given_, self.versions, transport=self._transport
                )
            case _:
                given_ = settings_from(ResponsesSettings, table)
                self.route = OpenAiResponsesRoute(
                    given_, self.versions, AllUploaded(), transport=self._transport
                )

    def _transport(self) -> InProcess:
        wire = "responses" if self.wire == "files" else self.wire
        self.transports.append(InProcess(wire))
        return self.transports[-1]

    async def sent(self, asked: LlmRequest) -> tuple[Prepared, bytes]:
        """Send a request; return it as it was prepared, and the bytes that went out."""
        prepared = await self.route.prepare(asked)
        chunks = [chunk async for chunk in self.route.stream(prepared)]
        assert [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)] == ["noted"]
        assert isinstance(chunks[-1], Finish)
        return prepared, self.transports[-1].body


THOUGHT = replay_state([thinking_entry("hm", "proof"), None])
texts = st.sampled_from(["", " ", "word", "呼\u2028\x7f", 'a "quoted" \\ text\n', "x" * 300])
ids = st.sampled_from(["c1", "c2", "call:0", "y" * 80])
image = st.just({"type": "image"})
block = st.one_of(texts.map(text), image, st.just({"type": "mystery"}))
said = st.one_of(
    texts.map(text),
    st.just({"type": "reasoning", "text": "hm"}),
    st.builds(call, ids, st.just("look"), st.sampled_from(["{}", "{", '{"at":1.50,"n":null}'])),
)
message = st.one_of(
    st.lists(block, max_size=3).map(lambda content: user(*content)),
    st.lists(said, min_size=1, max_size=3).map(lambda content: assistant(*content)),
    st.just(assistant({"type": "reasoning", "text": "hm"}, "so", replay_state=THOUGHT)),
    st.builds(lambda id_, content: result(id_, *content), ids, st.lists(block, max_size=2)),
    texts.map(system),
)
step = st.one_of(
    st.tuples(st.just("grow"), st.lists(message, min_size=1, max_size=4)),
    st.tuples(st.just("offload"), st.integers(1, 2)),
    st.tuples(st.just("compact"), st.integers(0, 12), st.integers(1, 6)),
    st.tuples(st.just("replace"), st.integers(0, 12), message),
    st.tuples(st.just("cut"), st.integers(0, 12)),
    st.tuples(st.just("tools"), st.booleans()),
    st.tuples(st.just("model"), st.sampled_from(["m", "m2"])),
    st.tuples(st.just("route"), st.sampled_from(["p", "q"])),
)


@dataclass
class History:
    """A conversation and how it is asked about, changed step by step."""

    block: Json
    messages: Growing[Json] = field(default_factory=lambda: Growing[Json]())
    tools: Sequence[Json] = (LOOK,)
    model: str = "m"
    provider: str = "p"

    def take(self, name: str, *given_: Any) -> None:
        """Make one step; what is kept of the messages stays the same objects."""
        now = list(self.messages)
        match name:
            case "grow":
                self.messages = self.messages.extended([self._shown(one) for one in given_[0]])
            case "offload":
                marked = zip(now, offloaded(now, given_[0]), strict=True)
                self.messages = Growing([old if old == new else new for old, new in marked])
            case "compact":
                now[given_[0] : given_[0] + given_[1]] = [user("what was said so far")]
                self.messages = Growing(now)
            case "replace":
                now[given_[0] : given_[0] + 1] = [self._shown(given_[1])]
                self.messages = Growing(now)
            case "cut":
                self.messages = Growing(now[: given_[0]])
            case "tools":
                self.tools = (LOOK,) if given_[0] else ()
            case "model":
                self.model = given_[0]
            case "route":
                self.provider = given_[0]

    def request(self) -> LlmRequest:
        header = request(model=self.model, provider=self.provider, tools=self.tools).header
        return LlmRequest(header, self.messages, "session-1")

    def _shown(self, one: Json) -> Json:
        """Return a message with a real picture where one is wanted."""

        def fill(value: Any) -> Any:
            if value == {"type": "image"}:
                return self.block
            if isinstance(value, Mapping):
                return {key: fill(item) for key, item in value.items()}
            return [fill(item) for item in value] if isinstance(value, list) else value

        return cast(Json, fill(one))


@pytest.mark.parametrize("wire", sorted(OPTIONS))
@given(steps=st.lists(step, min_size=1, max_size=7))
@settings(max_examples=30)
def test_what_is_sent_is_what_a_fresh_process_would_send(
    wire: str, store: FileAttachments, versions: RequestVersions, steps: list[tuple[Any, ...]]
) -> None:
    async def talk() -> None:
        lines = {name: Line(wire, name, versions) for name in ("p", "q")}
        history = History(picture(store, img()))
        history.take("grow", [user("hello", {"type": "image"}), assistant("so"), user("and?")])
        for one in steps:
            history.take(*one)
            fresh = Line(wire, history.provider, versions)

            prepared, sent = await lines[history.provider].sent(history.request())
            _, anew = await fresh.sent(history.request())

            assert sent == anew
            assert sent == orjson.dumps(prepared.body)
            await hang_up([fresh.route])
        await hang_up(line.route for line in lines.values())

    asyncio.run(talk())


@pytest.mark.parametrize("wire", sorted(OPTIONS))
def test_a_long_conversation_is_sent_in_few_pieces_that_requests_share(
    wire: str, versions: RequestVersions
) -> None:
    async def talk() -> None:
        line = Line(wire, "p", versions)
        messages: Growing[Json] = Growing()
        pieces: list[list[bytes]] = []
        for turn in range(3):
            said = [make(f"{turn} {'word ' * 1000}") for make in (user, assistant) * 200]
            messages = messages.extended(said)
            _, sent = await line.sent(LlmRequest(request().header, messages, "s"))
            assert len(sent) > 2_000_000 * (turn + 1)
            pieces.append(line.transports[0].pieces)

        assert [len(each) <= 8 for each in pieces] == [True] * 3
        assert pieces[1][1] is pieces[0][1]
        assert pieces[2][1] is pieces[0][1]
        await hang_up([line.route])

    asyncio.run(talk())


@pytest.mark.parametrize("wire", sorted(OPTIONS))
def test_a_given_transport_takes_the_request_with_its_length_and_is_closed(
    wire: str, versions: RequestVersions
) -> None:
    async def talk() -> InProcess:
        line = Line(wire, "p", versions)
        await line.sent(request(user("hello")))
        await hang_up([line.route])
        (transport,) = line.transports
        return transport

    transport = asyncio.run(talk())

    assert transport.request is not None
    headers = transport.request.headers
    assert headers.get_list("content-length") == [str(len(transport.body))]
    assert "transfer-encoding" not in headers
    assert headers["content-type"] == "application/json"
    assert transport.is_closed
