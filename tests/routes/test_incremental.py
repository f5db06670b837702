"""A request projected and written from where the last one ended is the same as one made whole."""

from collections.abc import Sequence

import orjson
from hypothesis import given
from hypothesis import strategies as st

from everfold.llm.route import LlmRequest
from everfold.routes.anthropic_content import MessagesForm
from everfold.routes.incremental import Listing, Projected, Projections
from everfold.routes.limits import Limits, RouteLimits
from everfold.routes.openai_chat_form import ChatForm
from everfold.routes.openai_responses_body import ResponsesForm
from everfold.routes.parts import ImagePart, Turn, images_in
from everfold.routes.projection import project
from everfold.routes.written import Form, ShowImage
from everfold.session.growing import Growing
from tests.routes.kit import LOOK, Json, assistant, call, request, result, system, text, user

CHAT = Limits("openai-compatible").of("m")
CLAUDE = Limits("anthropic").of("m")
IDS = st.sampled_from(["a", "b", "a.1", "呼"])


def image(omitted: bool) -> Json:
    block = {"type": "image", "attachment": {"attachmentId": "sha256:00", "bytes": 3}}
    return {**block, "offloaded": True} if omitted else block


BLOCKS = st.lists(
    st.one_of(st.sampled_from(["", " ", "hi"]).map(text), st.booleans().map(image)), max_size=3
)
MESSAGES = st.one_of(
    BLOCKS.map(lambda blocks: user(*blocks)),
    st.sampled_from(["", "x"]).map(system),
    st.tuples(st.sampled_from(["", "so"]), st.lists(IDS, max_size=3)).map(
        lambda said: assistant(said[0], *[call(id_) for id_ in said[1]])
    ),
    st.tuples(IDS, BLOCKS).map(lambda said: result(said[0], *said[1])),
)


class Plain:
    """A form that writes one item for each turn, whatever it is."""

    lifts_prompt = False

    def closes(self, turn: Turn) -> bool:  # as `Form` has it
        return True

    def write(
        self, turns: Sequence[Turn], show: ShowImage, *, is_first: bool
    ) -> list[Json]:  # as `Form` has it
        return [
            {"turn": repr(turn), "shown": [show(image) for image in images_in([turn])]}
            for turn in turns
        ]


FORMS: list[Form] = [Plain(), ChatForm(None), MessagesForm(True), ResponsesForm()]
SPECS = st.sampled_from(FORMS)


def shown(image: ImagePart) -> Json:
    return {"image": image.at}


def check(got: Projected, asked: LlmRequest, limits: RouteLimits) -> None:
    """Compare what was gone on with to what is projected and written whole."""
    whole = project(asked.messages, "p", "m", limits, has_tools=bool(asked.header.get("tools")))
    fresh = Projections("p", got.form).of(asked, limits)
    listing = Listing(got, shown)

    assert got.turns == whole
    assert got.images == images_in(whole)
    assert listing.items() == Listing(fresh, shown).items()
    assert b"".join(listing.pieces()) == orjson.dumps(listing.items())[1:-1]


@given(
    st.lists(MESSAGES, max_size=12),
    st.lists(st.integers(0, 12), max_size=5),
    st.sampled_from([CHAT, CLAUDE]),
    st.booleans(),
    SPECS,
)
def test_growing_or_shrinking_histories_are_written_as_if_from_nothing(
    messages: list[Json], cuts: list[int], limits: RouteLimits, has_tools: bool, form: Form
) -> None:
    projections = Projections("p", form)
    tools = [LOOK] if has_tools else []

    for cut in [*cuts, len(messages)]:
        asked = request(*messages[:cut], tools=tools)
        check(projections.of(asked, limits), asked, limits)


@given(st.lists(MESSAGES, min_size=1, max_size=10), SPECS, st.data())
def test_a_changed_message_is_written_anew(
    messages: list[Json], form: Form, data: st.DataObject
) -> None:
    projections = Projections("p", form)
    projections.of(request(*messages), CHAT)
    at = data.draw(st.integers(0, len(messages) - 1))
    asked = request(*messages[:at], user("changed"), *messages[at + 1 :])

    check(projections.of(asked, CHAT), asked, CHAT)


@given(st.lists(MESSAGES, min_size=1, max_size=10), SPECS, st.data())
def test_a_range_that_a_summary_replaced_is_gone(
    messages: list[Json], form: Form, data: st.DataObject
) -> None:
    projections = Projections("p", form)
    projections.of(request(*messages), CHAT)
    end = data.draw(st.integers(1, len(messages)))
    start = data.draw(st.integers(0, end - 1))
    asked = request(*messages[:start], user("summary"), *messages[end:])

    check(projections.of(asked, CHAT), asked, CHAT)


@given(st.lists(MESSAGES, max_size=8), st.lists(MESSAGES, max_size=8), SPECS)
def test_a_conversation_that_shares_its_list_grows_without_a_look_back(
    first: list[Json], more: list[Json], form: Form
) -> None:
    projections = Projections("p", form)
    shorter = Growing(first)
    longer = shorter.extended(more)

    for messages in (shorter, longer, shorter, shorter.extended([user("another way")])):
        asked = LlmRequest(request().header, messages, "session-1")
        check(projections.of(asked, CHAT), asked, CHAT)


def test_sessions_and_models_do_not_mix() -> None:
    projections = Projections("p", Plain())
    own = assistant({"type": "reasoning", "text": "hm"}, "ok")

    first = projections.of(request(user("a"), own), CHAT)
    other_session = projections.of(request(user("b"), session_id="session-2"), CHAT)
    other_model = projections.of(request(user("a"), own, model="m2"), CHAT)

    assert len(first.turns[1].parts) == 2
    assert len(other_model.turns[1].parts) == 1
    assert other_session.turns != first.turns


def test_a_conversation_is_written_once() -> None:
    counting = Counting()
    projections = Projections("p", counting)
    messages: list[Json] = []

    for number in range(50):
        messages += [user(f"q{number}"), assistant(f"a{number}")]
        list(Listing(projections.of(request(*messages), CHAT), shown).pieces())

    # Each turn once for good, and the latest exchange for each request.
    assert counting.turns <= 100 + 50 * 2


class Counting(Plain):
    """Counts the turns that it writes."""

    turns = 0

    def write(self, turns: Sequence[Turn], show: ShowImage, *, is_first: bool) -> list[Json]:
        self.turns += len(turns)
        return super().write(turns, show, is_first=is_first)


class TestMemory:
    """What is kept between requests has a limit in bytes."""

    TALK = (user("x" * 1000), assistant("y" * 1000), user("more"), assistant("z"))

    def kept(self, most: int, *asked: LlmRequest) -> int:
        projections = Projections("p", Plain(), kept_bytes=most)
        for one in asked:
            projections.of(one, CHAT)
        return projections.kept_bytes()

    def test_the_bytes_of_settled_turns_are_kept(self) -> None:
        assert 2000 < self.kept(10**6, request(*self.TALK)) < 3000

    def test_a_session_beyond_the_limit_is_not_kept_and_written_all_the_same(self) -> None:
        projections = Projections("p", Plain(), kept_bytes=100)
        asked = request(*self.TALK)

        check(projections.of(asked, CHAT), asked, CHAT)
        check(projections.of(asked, CHAT), asked, CHAT)

        assert projections.kept_bytes() == 0

    def test_the_session_longest_unused_goes_first(self) -> None:
        one, form = self.kept(10**6, request(*self.TALK)), Counting()
        projections = Projections("p", form, kept_bytes=2 * one)
        for name in ("a", "b", "a", "c"):
            projections.of(request(*self.TALK, session_id=name), CHAT)
        written = form.turns

        projections.of(request(*self.TALK, session_id="a"), CHAT)
        again = form.turns
        projections.of(request(*self.TALK, session_id="b"), CHAT)

        assert again == written
        assert form.turns == written + 3

    def test_a_compaction_lets_go_of_what_was_written_for_every_model(self) -> None:
        before = [request(*self.TALK, model=model) for model in ("m", "m2")]
        after = request(user("summary"), *self.TALK[3:])

        assert self.kept(10**6, *before, after) < 500
