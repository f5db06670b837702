"""Field reports, group M, through the whole product: the wire form, and what streams to readers."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everfold.agent.streaming import Live, Stored
from everfold.interchange.exporting import export_session
from everfold.interchange.importing import import_session
from everfold.projections.read_models.title import TITLE
from everfold.session.deciding import AppendEvent
from tests.domain.kit import text
from tests.end_to_end.conftest import Opening
from tests.end_to_end.history import answers, call, says
from tests.end_to_end.product import Product, image, pictures_sent, route_table, run, shown_texts
from tests.end_to_end.standing import Standing
from tests.host.kit import hello
from tests.providers.answers import Answer, ToolUse
from tests.providers.pictures import img
from tests.providers.rules import Rules
from tests.providers.seen import SeenThought
from tests.providers.strict_fake import StrictFake

SIGNATURE = "c2lnbmF0dXJlIG9mIHRoZSB0aG91Z2h0"
THOUGHT = Answer("so", reasoning="because of the tide", signature=SIGNATURE)


def thoughts(fake: StrictFake) -> list[SeenThought]:
    """Return the reasoning in the newest request."""
    seen = fake.last.seen
    assert seen is not None
    return seen.thoughts


@pytest.mark.parametrize("wire", ["messages", "responses"])
def test_m1_signed_reasoning_goes_back_as_it_came_and_stays_away_from_another_model(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, signatures=frozenset([SIGNATURE]))
    product = opened()
    product.most_calls = 4
    fake.will(THOUGHT)

    product.say("why?")
    product.say("go on")
    same_model = thoughts(fake)
    other = product.host.agent(product.session_id, model="m-2", takes_over=True)
    product.results.append(run(ask(product, other, "and you?")))
    other_model = thoughts(fake)
    product.say("back again")

    assert [(each.text, each.signature) for each in same_model] == [(THOUGHT.reasoning, SIGNATURE)]
    assert other_model == []
    assert [each.signature for each in thoughts(fake)] == [SIGNATURE]
    assert {result.kind for result in product.results} == {"completed"}
    assert "so" in shown_texts(product)


async def ask(product: Product, agent: Any, words: str) -> Any:
    """Ask an agent, and close its connections."""
    try:
        return await agent.ask(words)
    finally:
        await product.host.disconnect()


@pytest.mark.parametrize("wire", ["messages", "responses"])
def test_m1_reasoning_whose_proof_was_lost_costs_no_call(opened: Opening, fake: StrictFake) -> None:
    fake.rules = replace(fake.rules, signatures=frozenset([SIGNATURE]))
    product = opened()
    product.most_calls = 2
    fake.will(replace(THOUGHT, signature=""))

    product.say("why?")
    product.say("go on")

    assert {result.kind for result in product.results} == {"completed"}
    assert thoughts(fake) == []


@pytest.mark.parametrize("wire", ["messages", "responses"])
def test_m1_reasoning_that_was_interrupted_costs_no_call(opened: Opening, fake: StrictFake) -> None:
    fake.rules = replace(fake.rules, signatures=frozenset([SIGNATURE]))
    product = opened()
    product.most_calls = 3
    fake.will(replace(THOUGHT, text="so it was a long story" * 4, cut="mid-frame"))

    product.say("why?")
    product.say("go on")

    assert {result.kind for result in product.results} == {"completed"}


def test_m2_the_same_call_id_twice_is_unique_and_paired_on_the_wire(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened()
    product.most_calls = 4

    def note(what: str = "") -> str:
        """Note something."""
        return f"noted {what}"

    product.tools = [note]
    for what in ("a", "b"):
        wanted = (ToolUse("call_0", "note", f'{{"what": "{what}"}}'),)
        fake.will(Answer("", calls=wanted, finish="tool-calls"), Answer("ok"))
        product.say(f"note {what}")

    seen = fake.last.seen
    assert seen is not None
    assert [each.kind for each in seen.calls] == ["call", "answer"] * 2
    assert len({each.id for each in seen.calls}) == 2
    texts = [each.text for each in seen.texts]
    assert texts.index("noted a") < texts.index("noted b")


def test_m3_a_reader_that_reconnects_gets_each_stored_event_once_and_in_order(
    opened: Opening, fake: StrictFake
) -> None:
    """Pieces of answers carry no seq, so that no reader can take one for its place."""
    product = opened()
    product.most_calls = 10
    choice = random.Random(3)
    fake.default = Answer("a rather long answer in many pieces", piece=2)
    got: list[int] = []
    pieces = 0

    async def read(words: str) -> None:
        nonlocal pieces
        async for item in product.agent().stream(words):
            if isinstance(item, Live):
                pieces += 1
                assert not hasattr(item, "seq")
            elif choice.random() < 0.3:
                # The connection breaks here: the reader asks for what came after its last seq.
                got.extend(e.seq for e in product.sessions.log(product.session_id, first=len(got)))
            elif item.event.seq == len(got):
                got.append(item.event.seq)
        await product.host.disconnect()

    for number in range(10):
        run(read(f"question {number}"))
    reopened = opened(session_id=product.session_id)
    got.extend(e.seq for e in reopened.sessions.log(product.session_id, first=len(got)))

    assert got == list(range(len(product.log())))
    assert pieces > 100
    assert len(got) > 50


def test_m3_every_stored_event_reaches_a_stream_once(opened: Opening, fake: StrictFake) -> None:
    product = opened()
    product.most_calls = 1

    async def read() -> list[int]:
        seqs = [
            item.event.seq
            async for item in product.agent().stream("hello")
            if isinstance(item, Stored)
        ]
        await product.host.disconnect()
        return seqs

    seqs = run(read())

    assert seqs == list(range(seqs[0], len(product.log())))


def test_m4_what_nobody_said_is_marked_and_no_title_is_made_of_it(
    opened: Opening, fake: StrictFake, tmp_path: Path
) -> None:
    product = opened()
    product.most_calls = 2
    product.say(
        "<environment_context>linux</environment_context>",
        source={"kind": "plugin", "plugin": "environment"},
    )
    product.say("count the boats")
    file = tmp_path / "session.v3.jsonl"
    export_session(product.sessions.store, product.session_id, file)
    import_session(
        file,
        product.sessions.store,
        product.sessions.composition,
        product.sessions.means,
        session_id="imported",
    )

    log = list(product.sessions.log("imported"))
    said = [e.data["source"]["kind"] for e in log if e.type == "user/message"]
    state = TITLE.start()
    for event in log:
        state = TITLE.fold(state, event) if event.type in TITLE.types else state

    assert said == ["plugin", "user"]
    assert TITLE.view(state)["title"] == "count the boats"


FOREIGN = ("call.0", "call:0", "call_0", "x" * 70, "x" * 64 + "y" * 6, "呼び出し")
IDS = {
    "idre": (Rules(idre=True), {}),
    "forty": (Rules(max_id=40), {"max_length": 40}),
    "nine": (Rules(nine=True), {"alphabet": "a-zA-Z0-9", "max_length": 9, "exact_length": 9}),
}


@pytest.mark.parametrize("kind", sorted(IDS))
def test_m5_foreign_call_ids_are_mapped_the_same_way_for_ever(
    opened: Opening, fake: StrictFake, kind: str
) -> None:
    rules, tool_ids = IDS[kind]
    fake.rules = replace(fake.rules, idre=rules.idre, max_id=rules.max_id, nine=rules.nine)
    product = opened({"tool_ids": tool_ids})
    product.tools = [noted]
    product.most_calls = 2
    product.append(*foreign_calls())
    stored = [e.state for e in product.log()]

    product.say("go on")
    again = opened({"tool_ids": tool_ids}, session_id=product.session_id)
    again.tools = [noted]
    again.say("and on")

    first, second = (request.seen for request in fake.calls)
    assert first is not None
    assert second is not None
    assert [each.id for each in first.calls] == [each.id for each in second.calls]
    assert len({each.id for each in first.calls}) == len(FOREIGN)
    assert kind == "nine" or "call_0" in {each.id for each in first.calls}
    assert [e.state for e in product.log()][: len(stored)] == stored


def noted() -> str:
    """Note something."""
    return "noted"


def foreign_calls() -> list[AppendEvent]:
    """Return a turn in which another provider's ids were answered."""
    return [
        AppendEvent("turn/start", {"turn": 1}),
        hello("u", text("go")),
        *(
            wish
            for number, id_ in enumerate(FOREIGN)
            for wish in (
                says(1, f"c-{number}", call(id_, "noted")),
                answers(1, id_, text(f"of {number}")),
            )
        ),
        AppendEvent("turn/end", {"turn": 1, "reason": {"kind": "completed"}}),
    ]


def test_m6_pictures_of_tools_arrive_on_every_wire(opened: Opening, fake: StrictFake) -> None:
    product = opened()
    product.most_calls = 2

    def look() -> list[Any]:
        """Look around."""
        return ["two boats", image(img(shade=1)), image(img(shade=2))]

    product.tools = [look]
    fake.will(Answer("", calls=(ToolUse("c", "look"),), finish="tool-calls"))

    product.say("look", image(img(shade=3)))

    assert pictures_sent(product) == 3
    assert "two boats" in shown_texts(product)


def test_m6_a_model_without_eyes_is_told_of_each_picture(opened: Opening, fake: StrictFake) -> None:
    fake.rules = replace(fake.rules, images=False)
    product = opened({"images": {"user": False, "tool": False}})
    product.most_calls = 1

    result = product.say("see", *[image(img(shade=n)) for n in range(3)])

    assert result.kind == "completed"
    assert shown_texts(product).count("reads text only") == 3


def test_m6_pictures_survive_every_switch_of_the_wire(opened: Opening, fake: StrictFake) -> None:
    wires = ("chat", "messages", "responses", "files")
    product = opened(
        routes={name: route_table(fake, name) for name in wires}, fakes=dict.fromkeys(wires, fake)
    )
    product.most_calls = 5

    product.say("see", image(img(shade=1)), image(img(shade=2)), route="chat")
    counts = []
    for name in wires:
        product.say(f"now {name}", route=name)
        seen = fake.last.seen
        assert seen is not None
        counts.append(len(seen.images))

    assert counts == [2, 2, 2, 2]
    assert len(fake.uploads) == 2
