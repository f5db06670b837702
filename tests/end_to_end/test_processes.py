"""Field reports about turns in several processes (B2, C2, C4, C5, C10, D8, D12), on both databases."""

import pytest

from everfold.session.errors import OpenTurnError
from tests.agent.kit import unanswered
from tests.end_to_end.conftest import Opening
from tests.end_to_end.elsewhere import (
    Place,
    answer_then_hang,
    omit_first,
    shrink,
    talk,
    wait_in_tool,
)
from tests.end_to_end.history import turns
from tests.end_to_end.product import image, pictures_sent, shown_texts, until
from tests.end_to_end.standing import Standing
from tests.field_reports.kit import told
from tests.processes import PATIENCE_S, Worker, run_at_once
from tests.providers.answers import Answer, ToolUse
from tests.providers.pictures import img
from tests.providers.strict_fake import StrictFake

SMALL = (("compaction", (("keep_tokens", 100), ("min_span_tokens", 50))),)


@pytest.fixture
def url(store_url: str) -> str:
    """The URL of an empty store, on each database in turn."""
    return store_url


@pytest.fixture(params=["chat", "messages"])
def wire(request: pytest.FixtureRequest) -> str:
    """Processes differ by the database, not by the wire: two are enough."""
    name: str = request.param
    return name


@pytest.fixture
def place(url: str, fake: StrictFake, wire: str, opened: Opening) -> Place:
    """A session that was made by this process, for others to open."""
    product = opened(plugin={name: dict(settings) for name, settings in SMALL})
    product.most_calls = 6
    return Place(url, fake.url, wire, product.session_id, SMALL)


def test_d8_a_call_that_was_killed_twice_is_answered_once_in_the_log(
    place: Place, opened: Opening, fake: StrictFake
) -> None:
    fake.will(Answer("", calls=(ToolUse("c7", "wait"),), finish="tool-calls"))
    first = Worker(wait_in_tool, place, reports=True)
    assert told(first.pipe) == "running"
    first.process.kill()
    first.process.join(PATIENCE_S)
    second = Worker(answer_then_hang, place, reports=True)
    assert told(second.pipe) == "completed"
    second.process.kill()
    second.process.join(PATIENCE_S)

    third = Worker(talk, place, "and now?").result()

    assert third == ["completed"]
    product = opened(session_id=place.session_id)
    product.most_calls = 6
    (answer,) = product.data("tool/result")
    assert answer["error"]["code"] == "TOOL_OUTCOME_UNKNOWN"
    assert unanswered(product.log()) == {}
    told_model = shown_texts(product)
    assert "unknown" in told_model.lower()


def test_c2_a_fork_and_a_fork_of_it_have_the_whole_history_in_new_processes(
    place: Place, opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    product = opened(session_id=place.session_id)
    product.most_calls = 3
    product.append(*turns(3))
    child = product.sessions.fork(place.session_id)
    in_child = Place(place.url, place.fake_url, place.wire, child)
    assert Worker(talk, in_child, "from the child").result() == ["completed"]
    grandchild = product.sessions.fork(child)
    standing.sessions |= {child, grandchild}

    in_grandchild = Place(place.url, place.fake_url, place.wire, grandchild)
    assert Worker(talk, in_grandchild, "from the grandchild").result() == ["completed"]

    texts = shown_texts(product)
    for words in ("question 1", "question 3", "answer 3", "from the child", "from the grandchild"):
        assert texts.count(words) == 1


def test_c4_a_fork_amid_a_call_is_refused_and_leaves_the_parent_alone(
    place: Place, opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    product = opened(session_id=place.session_id)
    product.most_calls = 3
    before = product.sessions.load(place.session_id).next_seq
    refusals: list[str] = []

    def split() -> str:
        """Fork this session while its own call runs."""
        try:
            product.sessions.fork(place.session_id)
        except OpenTurnError as error:
            refusals.append(str(error))
        return "done"

    product.tools = [split]
    fake.will(Answer("", calls=(ToolUse("c1", "split"),), finish="tool-calls"))

    result = product.say("fork yourself")
    child = product.sessions.fork(place.session_id)
    standing.sessions.add(child)

    assert result.kind == "completed"
    assert len(refusals) == 1
    assert len(list(product.sessions.summaries())) == 2
    assert product.say("go on", session_id=child).kind == "completed"
    assert before < product.sessions.load(child).next_seq


def test_c5_parent_and_fork_talk_in_turn_in_two_processes(
    place: Place, opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    product = opened(session_id=place.session_id)
    product.most_calls = 5
    product.say("together")
    child = product.sessions.fork(place.session_id)
    standing.sessions.add(child)
    in_child = Place(place.url, place.fake_url, place.wire, child)

    mine = [product.say("parent 1").kind]
    theirs = Worker(talk, in_child, "child 1", "child 2").result()
    mine.append(product.say("parent 2").kind)

    assert [*mine, *theirs] == ["completed"] * 4
    texts = shown_texts(product)
    assert "parent 1" in texts
    assert "child" not in texts


def test_c10_the_next_request_sees_what_another_process_repaired(
    place: Place, opened: Opening, fake: StrictFake
) -> None:
    product = opened(session_id=place.session_id)
    product.most_calls = 2
    product.say("see", image(img(shade=1)), image(img(shade=2)))
    assert pictures_sent(product) == 2

    Worker(omit_first, place).result()
    result = product.say("and now?")

    assert result.kind == "completed"
    assert pictures_sent(product) == 1


def test_d12_two_processes_that_summarise_at_once_make_one_summary(
    place: Place, opened: Opening, fake: StrictFake
) -> None:
    product = opened(session_id=place.session_id)
    product.most_calls = 4
    product.append(*turns(10, "w" * 200))
    product.say("hello")
    fake.default = Answer("They spoke of boats.", first_byte_s=0.2)

    outcomes = run_at_once(shrink, [(place,), (place,)])

    fake.default = Answer()
    assert outcomes.count("compacted") == 1
    assert set(outcomes) <= {"compacted", "nothing", "busy", "changed"}
    assert product.say("and now?").kind == "completed"
    assert sum(e.type == "compaction/summary" for e in product.log()) == 1


def test_b2_a_message_from_another_process_during_a_summary_is_answered(
    place: Place, opened: Opening, fake: StrictFake
) -> None:
    product = opened(session_id=place.session_id)
    product.most_calls = 4
    product.append(*turns(10, "w" * 200))
    product.say("hello")
    fake.will(Answer("They spoke of boats.", first_byte_s=2.0))
    shrinking = Worker(shrink, place)
    until(lambda: len(fake.calls) == 2)

    said = Worker(talk, place, "meanwhile").result()

    assert said == ["completed"]
    assert shrinking.result() in ("compacted", "changed")
    assert product.say("and now?").kind == "completed"
    assert "meanwhile" in shown_texts(product)
