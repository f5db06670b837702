"""Acts that disturb a session in every way, and a player that carries them out on the whole product."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from everfold.agent.errors import AgentError
from everfold.agent.tools import ImageData
from everfold.projections.compaction.engine import Compactor
from everfold.projections.compaction.errors import CompactionError
from everfold.projections.compaction.job import CompactionWish
from everfold.projections.compaction.settings import CompactionSettings
from everfold.projections.image_offload.decisions import bring_back, occurrences, omit
from everfold.session.errors import StoreUnavailableError
from everfold.session.frozen import Json
from tests.agent.faults import CrashError, crashing, failing
from tests.end_to_end.product import Product, image, run
from tests.end_to_end.standing import check_outcome
from tests.providers.answers import EMPTY, Answer, Refuse, ToolUse
from tests.providers.pictures import img
from tests.providers.refusing import Rejection, Style, error
from tests.providers.rules import STRICT, Rules
from tests.providers.strict_fake import StrictFake

WIRES = ("chat", "messages", "responses")
STYLES: tuple[Style, ...] = ("R1", "R2", "R3", "R4", "R5", "R6")
SMALL, LARGE = 2_000, 9_000
EASY = replace(STRICT, declared=True)
LIMITED: Mapping[str, Rules] = {
    "none": EASY,
    "two images": replace(EASY, max_images=2),
    "small images": replace(EASY, max_image_b64=8_000),
    "small body": replace(EASY, max_body=16_000),
    "short window": replace(EASY, max_chars=6_000),
}
ANSWERS: Mapping[str, Answer | Refuse] = {
    "says": Answer("hello"),
    "thinks": Answer("so", reasoning="because", signature="c2lnbmF0dXJlIG9mIHRoZSB0aG91Z2h0"),
    "calls": Answer(
        "",
        calls=(ToolUse("c1", "give"), ToolUse("c.2", "give", '{"what": "image"}')),
        finish="tool-calls",
    ),
    "calls the same id": Answer(
        "I try", calls=(ToolUse("c1", "give", '{"what": "error"}'),), finish="tool-calls"
    ),
    "calls badly": Answer(
        "",
        calls=(ToolUse("x" * 70, "give", "{oops"), ToolUse("呼", "no_such")),
        finish="tool-calls",
    ),
    "says a lot": Answer("w" * 3_000, piece=500),
    "stops short": Answer("half", finish="max-tokens"),
    "is cut": Answer("abcdefgh" * 4, cut="mid-frame"),
    "is malformed": Answer("abcdefgh" * 4, malformed=True),
    "is empty": EMPTY,
    "is down": Refuse(500, b"oh no"),
    "is busy": Refuse(429, b"", {"retry-after-ms": "1"}),
    "refuses": error("openai", 400, "temperature: no"),
    "is too large": Refuse(413, b""),
}


@dataclass(frozen=True)
class Turn:
    """A turn on a wire: what the user shows, what the provider does, and where the process dies."""

    wire: str
    images: tuple[int, ...]
    answers: tuple[str, ...]
    rules: str
    style: Style
    crash_at: int | None
    is_stored: bool
    fail_at: int | None


@dataclass(frozen=True)
class Compact:
    """A summary that the owner asks for; `answers` come first, and the process may die."""

    wire: str
    keep: int
    answers: tuple[str, ...]
    crash_at: int | None


@dataclass(frozen=True)
class Decide:
    """An explicit decision about one picture."""

    number: int


@dataclass(frozen=True)
class Fork:
    """Go on in a fork."""


@dataclass(frozen=True)
class Reopen:
    """Go on in another process."""


Act = Turn | Compact | Decide | Fork | Reopen

_RARELY = st.sampled_from((None, None, None, None, 1, 2, 3, 4, 5, 6))
_SCRIPT = st.lists(st.sampled_from(sorted(ANSWERS)), min_size=1, max_size=4).map(tuple)
_TURNS = st.builds(
    Turn,
    st.sampled_from(WIRES),
    st.lists(st.sampled_from((SMALL, LARGE)), max_size=3).map(tuple),
    _SCRIPT,
    st.sampled_from(sorted(LIMITED)),
    st.sampled_from(STYLES),
    _RARELY,
    st.booleans(),
    _RARELY,
)
_COMPACTIONS = st.builds(
    Compact,
    st.sampled_from(WIRES),
    st.sampled_from((0, 100, 400)),
    _SCRIPT,
    st.sampled_from((None, None, None, 1, 2)),
)
_KINDS: Mapping[str, st.SearchStrategy[Act]] = {
    "turn": _TURNS,
    "compact": _COMPACTIONS,
    "decide": st.builds(Decide, st.integers(0, 9)),
    "fork": st.builds(Fork),
    "reopen": st.builds(Reopen),
}
_WEIGHTED = (*["turn"] * 6, "compact", "compact", "decide", "fork", "reopen")
ACTS: st.SearchStrategy[list[Act]] = st.lists(
    st.sampled_from(_WEIGHTED).flatmap(lambda kind: _KINDS[kind]), min_size=4, max_size=9
)


def give(what: str = "text") -> ImageData | str:
    """Give something."""
    if what == "error":
        raise ValueError("no such thing")
    return image(img(SMALL, shade=99)) if what == "image" else "given"


@dataclass
class Player:
    """Carries acts out on one session after another.

    Attributes:
        played: every session that was touched.
        reasons: why there was no summary, each time that one failed.
    """

    product: Product
    fake: StrictFake
    played: set[str] = field(default_factory=set)
    number: int = 0
    reasons: list[str] = field(default_factory=list)

    def play(self, act: Act) -> None:
        self.played.add(self.product.session_id)
        match act:
            case Turn():
                self.turn(act)
            case Compact():
                self.compact(act)
            case Decide(number):
                self.decide(number)
            case Fork():
                self.product.sessions.resume(self.product.session_id)
                self.product.session_id = self.product.sessions.fork(self.product.session_id)
            case Reopen():
                pass
        self.played.add(self.product.session_id)

    def turn(self, act: Turn) -> None:
        self.script(act.answers)
        self.fake.rules, self.fake.rejection = LIMITED[act.rules], Rejection(act.style)
        sessions = self.product.sessions
        if act.crash_at is not None:
            sessions = crashing(sessions, act.crash_at, is_stored=act.is_stored)
        elif act.fail_at is not None:
            sessions = failing(sessions, act.fail_at)
        host = replace(self.product.host, sessions=sessions)
        self.number += 1
        pictures = [self.picture(size) for size in act.images]
        try:
            result = run(self.asked(host, act.wire, [f"turn {self.number}", *pictures]))
        except (CrashError, StoreUnavailableError, AgentError):
            return
        check_outcome(result.kind, result.failure)

    def picture(self, size: int) -> Json:
        self.number += 1
        return self.product.old_picture(img(size, shade=self.number))

    async def asked(self, host: Any, wire: str, parts: Sequence[Any]) -> Any:
        agent = host.agent(
            self.product.session_id, route=wire, tools=[give], takes_over=True, jitter=lambda: 0.0
        )
        try:
            return await agent.ask(list(parts))
        finally:
            await host.disconnect()

    def script(self, names: Sequence[str]) -> None:
        self.fake.answers.clear()
        self.fake.will(*(ANSWERS[name] for name in names))

    def compact(self, act: Compact) -> None:
        self.script(act.answers)
        self.fake.rules = EASY
        sessions = self.product.sessions
        if act.crash_at is not None:
            sessions = crashing(sessions, act.crash_at, is_stored=True)
        host = replace(self.product.host, sessions=sessions)
        settings = CompactionSettings(keep_tokens=act.keep, min_span_tokens=20)

        async def work() -> None:
            compactor = Compactor(host.route, settings, host.waterfalls)
            wish = CompactionWish(provider=act.wire, model="m-1")
            try:
                await compactor.compact(host.access(self.product.session_id), wish)
            finally:
                await host.disconnect()

        try:
            run(work())
        except CrashError:
            return
        except CompactionError as failure:
            self.reasons.append(str(failure))

    def decide(self, number: int) -> None:
        product = self.product
        listed = occurrences(product.access.view(), product.log())
        found = [each for each in listed if each.state != "output" and each.decided_by != each.seq]
        if found:
            chosen = found[number % len(found)]
            change = omit if chosen.state == "retained" else bring_back
            change(product.access, {chosen.seq: [chosen.index]})
