"""A request projected from where the last one ended is the same as one projected whole."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from everfold.llm.route import LlmRequest
from everfold.routes.incremental import Projections
from everfold.routes.limits import Limits
from everfold.routes.parts import Turn, images_in
from everfold.routes.projection import project
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


def whole(asked: LlmRequest, limits: object) -> list[Turn]:
    assert limits in (CHAT, CLAUDE)
    rule = CHAT if limits == CHAT else CLAUDE
    return project(asked.messages, "p", "m", rule, has_tools=bool(asked.header.get("tools")))


def written(turn: Turn) -> list[Json]:
    return [{"turn": repr(turn)}]


@given(
    st.lists(MESSAGES, max_size=12),
    st.lists(st.integers(0, 12), max_size=5),
    st.sampled_from([CHAT, CLAUDE]),
    st.booleans(),
)
def test_growing_or_shrinking_histories_project_as_if_from_nothing(
    messages: list[Json], cuts: list[int], limits: object, has_tools: bool
) -> None:
    projections = Projections("p", lambda _: None)
    rule = CHAT if limits == CHAT else CLAUDE
    tools = [LOOK] if has_tools else []

    for cut in [*cuts, len(messages)]:
        asked = request(*messages[:cut], tools=tools)
        got = projections.of(asked, rule)

        assert got.turns == whole(asked, limits)
        assert got.images == images_in(got.turns)
        assert got.items(written) == [item for turn in got.turns for item in written(turn)]


@given(st.lists(MESSAGES, min_size=1, max_size=10), st.data())
def test_a_changed_message_is_projected_anew(messages: list[Json], data: st.DataObject) -> None:
    projections = Projections("p", lambda _: None)
    projections.of(request(*messages), CHAT).items(written)
    at = data.draw(st.integers(0, len(messages) - 1))
    changed = [*messages[:at], user("changed"), *messages[at + 1 :]]

    asked = request(*changed)
    got = projections.of(asked, CHAT)

    assert got.turns == whole(asked, CHAT)
    assert got.items(written) == [item for turn in got.turns for item in written(turn)]


def test_sessions_and_models_do_not_mix() -> None:
    projections = Projections("p", lambda _: None)
    own = assistant({"type": "reasoning", "text": "hm"}, "ok")

    first = projections.of(request(user("a"), own), CHAT)
    other_session = projections.of(request(user("b"), session_id="session-2"), CHAT)
    other_model = projections.of(request(user("a"), own, model="m2"), CHAT)

    assert len(first.turns[1].parts) == 2
    assert len(other_model.turns[1].parts) == 1
    assert orjson.dumps(other_session.items(written)) != orjson.dumps(first.items(written))
