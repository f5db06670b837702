"""Field reports, groups C, E and G as far as turns decide them, through the whole product."""

import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from everfold.interchange.exporting import export_session
from everfold.interchange.importing import import_session
from tests.end_to_end.conftest import Opening
from tests.end_to_end.product import Product, image, pictures_sent, shown_texts
from tests.end_to_end.standing import Standing
from tests.providers.answers import Answer, Refuse, ToolUse
from tests.providers.pictures import img
from tests.providers.strict_fake import StrictFake

NUL = "W\x00s\x00l\x00"
ESCAPES = ("\\u0000", "\\\\u0000", "\\\\\\u0000")


def turn_ends(product: Product) -> list[int]:
    """Return the seqs at which turns ended."""
    return [event.seq for event in product.log() if event.type == "turn/end"]


def test_c3_c6_c7_going_back_goes_on_from_there_and_the_rest_stays_in_the_log(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    product = opened()
    product.most_calls = 5 + 2
    for number in range(1, 6):
        product.say(f"question {number}")
    run_later = product.sessions.load(product.session_id).next_seq

    back = product.sessions.fork(product.session_id, boundary=turn_ends(product)[1])
    standing.sessions.add(back)
    again = opened(session_id=back)
    first = again.say("from here", session_id=back)
    fork_of_it = again.sessions.fork(back)
    standing.sessions.add(fork_of_it)
    second = again.say("and on", session_id=fork_of_it)

    assert (first.kind, second.kind) == ("completed", "completed")
    texts = shown_texts(again)
    assert [word in texts for word in ("question 1", "question 2", "question 3")] == [
        True,
        True,
        False,
    ]
    assert texts.count("from here") == 1
    assert product.sessions.load(product.session_id).next_seq == run_later


def test_e1_e2_odd_characters_pass_through_tools_log_and_wire(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened()
    product.most_calls = 2
    got: list[str] = []

    def echo(what: str) -> str:
        """Say it again."""
        got.append(what)
        return f"{NUL}{''.join(ESCAPES)}"

    product.tools = [echo]
    arguments = json.dumps({"what": NUL + ESCAPES[2]})
    fake.will(Answer("", calls=(ToolUse("c", "echo", arguments),), finish="tool-calls"))

    result = product.say(f"say {NUL} and {ESCAPES[1]}")

    assert result.kind == "completed"
    assert got == [NUL + ESCAPES[2]]
    texts = shown_texts(product)
    assert f"say {NUL} and {ESCAPES[1]}" in texts
    assert f"{NUL}{''.join(ESCAPES)}" in texts


def test_e1_text_of_a_user_that_is_no_unicode_is_mended_and_the_log_says_so(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened()
    product.most_calls = 1

    result = product.say("half a \ud83d character")

    assert result.kind == "completed"
    assert "half a \ufffd character" in shown_texts(product)
    assert any("repair" in event.type for event in product.log())


NUMBERS = ("NaN", "Infinity", "-Infinity", "1e400", "-0.0", str(2**63), str(2**53 + 1))


@pytest.mark.parametrize("number", NUMBERS)
def test_e3_odd_numbers_of_a_model_cost_no_turn(
    opened: Opening, fake: StrictFake, number: str
) -> None:
    product = opened()
    product.most_calls = 2

    def add(value: float) -> dict[str, float]:
        """Add one."""
        return {"sum": value + 1}

    product.tools = [add]
    wanted = ToolUse("c", "add", f'{{"value": {number}}}')
    fake.will(Answer("", calls=(wanted,), finish="tool-calls"))

    result = product.say("add")

    assert result.kind == "completed"
    assert len(product.data("tool/result")) == 1


def test_e4_a_picture_is_the_same_bytes_at_every_step(
    opened: Opening, fake: StrictFake, tmp_path: Path, standing: Standing
) -> None:
    product = opened()
    product.most_calls = 2
    data = img(70_000)
    product.say("see", image(data))
    file = tmp_path / "session.v3.jsonl"
    export_session(product.sessions.store, product.session_id, file)
    sessions = product.sessions
    import_session(
        file, sessions.store, sessions.composition, sessions.means, session_id="imported"
    )
    standing.sessions.add("imported")

    product.say("and now?", session_id="imported")

    sent = [each.data for call in fake.calls if call.seen for each in call.seen.images]
    assert {hashlib.sha256(each or b"").hexdigest() for each in sent} == {
        hashlib.sha256(data).hexdigest()
    }
    assert len(sent) == 2


def test_e4_a_tool_that_returns_raw_bytes_is_answered_for(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened()
    product.most_calls = 2

    def read() -> Any:
        """Give raw bytes."""
        return b"\xff\xfe\x00"

    product.tools = [read]
    fake.will(Answer("", calls=(ToolUse("c", "read"),), finish="tool-calls"))

    result = product.say("read")

    assert result.kind == "completed"
    (stored,) = product.data("tool/result")
    assert stored["message"]["content"][0]["content"]


def test_g3_each_turn_takes_less_than_twice_its_text_however_long_the_session_is(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened()
    product.most_calls = 60
    words = "All the boats that came in on the tide were blue. " * 40
    fake.default = Answer(words, piece=64)

    for number in range(60):
        product.say(f"{number} {words}")

    sizes = [len(row.state) for row in product.log()]
    ends = [0, *(seq + 1 for seq in turn_ends(product))]
    turns = [sum(sizes[first:last]) for first, last in pairwise(ends)]
    assert max(turns[1:]) - min(turns[1:]) < 100
    assert sum(sizes) <= 2 * 60 * 2 * len(words)


def test_g4_a_picture_of_many_sessions_and_forks_is_kept_once(
    opened: Opening, fake: StrictFake, tmp_path: Path, standing: Standing
) -> None:
    product = opened()
    product.most_calls = 4 * 2 + 3
    data = img(500_000)
    names = [product.session_id, *(product.sessions.create().id for _ in range(3))]

    for name in names:
        product.say("see", *[image(data)] * 5, session_id=name)
        product.say("again", *[image(data)] * 5, session_id=name)
    forks = [product.sessions.fork(names[0]) for _ in range(3)]
    for fork in forks:
        product.say("and in a fork", session_id=fork)
    standing.sessions |= {*names, *forks}

    kept = sum(
        file.stat().st_size for file in tmp_path.rglob("*attachments*/**/*") if file.is_file()
    )
    assert 500_000 <= kept <= 750_000
    assert pictures_sent(product) == 10


HALF = "a\\ud800b"
STREAMS = {
    "chat": [
        f'{{"choices": [{{"index": 0, "delta": {{"content": "{HALF}"}}}}]}}',
        '{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}',
    ],
    "messages": [
        '{"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant",'
        ' "model": "m-1", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}}',
        '{"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}',
        '{"type": "content_block_delta", "index": 0,'
        f' "delta": {{"type": "text_delta", "text": "{HALF}"}}}}',
        '{"type": "content_block_stop", "index": 0}',
        '{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}',
        '{"type": "message_stop"}',
    ],
}


@pytest.mark.parametrize("wire", sorted(STREAMS))
def test_e1_text_of_a_model_that_is_no_unicode_is_mended_and_costs_no_turn(
    opened: Opening, fake: StrictFake, wire: str
) -> None:
    product = opened()
    product.most_calls = 2
    frames = "".join(f"data: {event}\n\n" for event in STREAMS[wire])
    fake.will(Refuse(200, frames.encode(), {"Content-Type": "text/event-stream"}))

    first = product.say("hello")
    second = product.say("go on")

    assert (first.kind, first.text) == ("completed", "a\ufffdb")
    assert second.kind == "completed"
    assert "a\ufffdb" in shown_texts(product)
