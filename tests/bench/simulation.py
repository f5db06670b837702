"""The scenario of the design notes, request by request: durable omission beside recomputing each time.

One conversation grows by pictures while its route changes: files, an outage with inline images, a
small route, a compaction, and files again. For every request it is noted which images the model
was shown, and how much of the bytes sent before were sent again unchanged. A provider's prompt
cache lives from that prefix.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from everfold.agent.requests import rebuild_request
from everfold.llm.budgets import ImageBudget, required_offload
from everfold.llm.images import images, is_omitted, marked, retained
from everfold.llm.route import Capabilities, LlmRequest
from everfold.routes.scripted import ScriptedRoute, says
from everfold.session.deciding import replacement
from everfold.session.frozen import Json
from tests.agent.kit import Host, hosting, png
from tests.domain.kit import text, user

MIB = 1024 * 1024
FILES = ImageBudget("raw", 128 * MIB, 600, 64 * MIB, 20)
INLINE = ImageBudget("base64", 20 * MIB, 600, 10 * MIB, 20)
SMALL = ImageBudget("raw", 20 * MIB)
PICTURE = 3 * MIB


@dataclass(frozen=True, slots=True)
class Phase:
    """Some turns on one route; `compacts` puts a summary in place of the older half before them."""

    name: str
    budget: ImageBudget
    turns: int
    compacts: bool = False


PHASES = (
    Phase("files", FILES, 46),
    Phase("inline", INLINE, 3),
    Phase("files", FILES, 8),
    Phase("small", SMALL, 5),
    Phase("files", FILES, 8),
    Phase("files", FILES, 10, compacts=True),
)


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as one way of working sends it.

    Attributes:
        shown: the images that the model sees, by number.
        body: the messages' bytes.
        kept: the part of the request before that this one begins with, 0 to 1.
    """

    shown: tuple[int, ...]
    body: bytes
    kept: float


@dataclass(slots=True)
class Course:
    """The requests of one way of working, in order."""

    sent: list[Sent] = field(default_factory=list)

    def add(self, messages: Iterable[Mapping[str, Json]]) -> None:
        """Note the next request."""
        listed = list(messages)
        body = b"\n".join(json.dumps(dict(message)).encode() for message in listed)
        before = self.sent[-1].body if self.sent else b""
        kept = _common(before, body) / len(before) if before else 1.0
        self.sent.append(Sent(_shown(listed), body, kept))


@dataclass(slots=True)
class Line:
    """One request in both ways of working; `decision` says what was logged before it."""

    phase: str
    decision: str
    ours: Sent
    recomputed: Sent


def simulate(url: str) -> list[Line]:
    """Run the scenario on a new store; return a line for each request that was sent.

    Raises:
        AssertionError: a request is not what the log alone gives, or the prefix that was sent
            moved back without a logged decision.
    """
    with hosting(url) as host:
        return asyncio.run(_Run(host).lines())


class _Run:
    """One run of the scenario."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._session = host.new_session()
        self._ours, self._recomputed = Course(), Course()
        self._lines: list[Line] = []
        self._decisions = 0
        self._pictures = 0

    async def lines(self) -> list[Line]:
        for phase in PHASES:
            if phase.compacts:
                self._compact()
            route = ScriptedRoute(
                otherwise=says("seen"),
                takes=Capabilities(user_images=True, tool_images=True, budget=phase.budget),
            )
            agent = self._host.agent(route, self._session)
            for _ in range(phase.turns):
                await agent.ask([f"picture {self._pictures}", png(self._pictures, PICTURE)])
                self._pictures += 1
                self._note(phase, route)
            await agent.close()
        return self._lines

    def _note(self, phase: Phase, route: ScriptedRoute) -> None:
        """Note the request that was sent last, and check that the log alone gives it."""
        request: LlmRequest = route.sent[-1].extra["request"]
        answered = self._host.sessions.load(self._session).nodes[-1]
        rebuilt = rebuild_request(self._host.sessions, self._session, answered - 1)
        assert list(rebuilt.messages) == list(request.messages), "the log gives another request"
        self._ours.add(request.messages)
        self._recomputed.add(recomputed(request.messages, phase.budget))
        decision = self._decision()
        ours = self._ours.sent[-1]
        assert decision or ours.kept == 1.0, "the prefix moved back without a decision"
        self._lines.append(Line(phase.name, decision, ours, self._recomputed.sent[-1]))

    def _decision(self) -> str:
        """Name the decisions that were logged since the last request."""
        events = self._host.log(self._session)[self._decisions :]
        self._decisions += len(events)
        names = []
        for event in events:
            if event.type == "image/offload":
                count = sum(len(target["imageIndexes"]) for target in event.data["targets"])
                names.append(f"omit {count}")
            elif event.type == "user/message" and event.surface_op != "append":
                names.append("compact")
        return ", ".join(names)

    def _compact(self) -> None:
        """Put a summary in the place of the older half of the conversation."""
        nodes = list(self._host.sessions.load(self._session).nodes)
        span = nodes[1 : len(nodes) // 2 + 1]
        summary = user("summary", text("<summary>many pictures were looked at</summary>"))
        wish = replacement("user/message", summary, start=span[0], end=span[-1], sources=span)
        self._host.sessions.append_batch(self._session, [wish])


def recomputed(
    messages: Sequence[Mapping[str, Json]], budget: ImageBudget
) -> list[Mapping[str, Json]]:
    """Return the request that is made when nothing is remembered: the omission of this budget alone."""
    plain = [_unmarked(message) for message in messages]
    lengths = [
        image["attachment"]["bytes"] for message in plain for image in images(message["content"])
    ]
    left = required_offload(lengths, budget)
    result: list[Mapping[str, Json]] = []
    for message in plain:
        gone = retained(message["content"])[:left]
        left -= len(gone)
        result.append({**message, "content": marked(message["content"], gone)})
    return result


def _unmarked(message: Mapping[str, Json]) -> Mapping[str, Json]:
    content = [
        {name: value for name, value in block.items() if name != "offloaded"}
        for block in message["content"]
    ]
    return {**message, "content": content}


def _shown(messages: Iterable[Mapping[str, Json]]) -> tuple[int, ...]:
    return tuple(
        int(image["attachment"]["attachmentId"].removeprefix("sha256:"), 16)
        for message in messages
        for image in images(message["content"])
        if not is_omitted(image)
    )


def _common(left: bytes, right: bytes) -> int:
    """Return the length of the common beginning."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
