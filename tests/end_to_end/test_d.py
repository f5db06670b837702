"""Field reports, group D, through the whole product: what shrinks a history keeps it valid and whole."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest

from everfold.llm.failure import FailureCode
from everfold.projections.compaction.engine import Compacted, Compactor, NothingToDo
from everfold.projections.compaction.errors import CompactionError
from everfold.projections.compaction.job import CompactionWish
from everfold.projections.compaction.settings import CompactionSettings
from tests.domain.kit import text
from tests.end_to_end.conftest import Opening
from tests.end_to_end.history import answers, call, failed, says, turn, turns
from tests.end_to_end.product import UNCHECKED, Product, run, shown_texts
from tests.end_to_end.standing import Standing
from tests.providers.answers import EMPTY, Answer, Refuse, ToolUse
from tests.providers.refusing import Rejection
from tests.providers.strict_fake import StrictFake

SMALL = {"compaction": {"keep_tokens": 100, "min_span_tokens": 50}}
SUMMARY = Answer("They spoke of boats.")


def note(what: str = "") -> str:
    """Note something."""
    return f"noted {what}"


def with_tools(product: Product) -> Product:
    product.tools = [note]
    return product


@pytest.mark.parametrize("keep", [0, 150, 700, 2_000])
def test_d1_a_history_of_parallel_calls_is_valid_wherever_it_is_cut(
    opened: Opening, fake: StrictFake, keep: int
) -> None:
    fake.rules = replace(fake.rules, declared=True)
    product = with_tools(opened(plugin={"compaction": {"keep_tokens": keep}}))
    product.most_calls = 3
    product.append(*turns(40, "w" * 100, tools=3))
    product.say("hello")

    outcome = product.compact()
    result = product.say("and now?")

    assert isinstance(outcome, Compacted)
    assert result.kind == "completed"


def test_d3_what_the_summary_does_not_cover_stays_and_the_log_is_complete(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened(plugin={"compaction": {"keep_tokens": 1_000}})
    product.most_calls = 2
    product.append(*turns(50, "w" * 100))
    product.say("hello")
    before = product.messages()
    rows = [event.state for event in product.log()]

    outcome = product.compact()

    assert isinstance(outcome, Compacted)
    after = product.messages()
    kept = len(before) - 1 - len(outcome.hidden)
    assert after[-kept:] == before[-kept:]
    assert [event.state for event in product.log()][: len(rows)] == rows


def test_d4_a_summary_that_a_tool_asks_for_keeps_its_pair_whole(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened(plugin=SMALL)
    product.most_calls = 3
    product.append(*turns(10, "w" * 200))
    outcomes: list[object] = []

    async def shrink() -> str:
        """Summarise the session."""
        wish = CompactionWish()
        outcomes.append(await product.host.compactor().compact(product.access, wish))
        return "done"

    product.tools = [shrink]
    fake.will(Answer("", calls=(ToolUse("c1", "shrink"),), finish="tool-calls"), SUMMARY)

    result = product.say("shrink yourself")

    assert result.kind == "completed"
    assert isinstance(outcomes[0], Compacted)
    seen = fake.last.seen
    assert seen is not None
    assert [each.kind for each in seen.calls] == ["call", "answer"]


def test_d5_rejections_errors_and_answers_without_a_call_are_summarised(
    opened: Opening, fake: StrictFake
) -> None:
    product = with_tools(opened(plugin=SMALL))
    product.most_calls = 3
    product.append(
        *turn(1, "w" * 400),
        says(1, "x1", call("rejected"), call("failed")),
        answers(1, "rejected", text("The user said no.")),
        failed(1, "failed"),
        answers(1, "orphan", text("Nobody asked.")),
        *turn(2, "w" * 400),
    )
    product.say("hello")

    outcome = product.compact()

    assert isinstance(outcome, Compacted)
    assert product.say("and now?").kind == "completed"


def test_d5_one_pair_that_spans_nearly_all_is_a_no_op_without_a_request(
    opened: Opening, fake: StrictFake
) -> None:
    product = with_tools(opened())
    product.most_calls = 2
    fake.will(Answer("", calls=(ToolUse("c", "note", '{"what": "a"}'),), finish="tool-calls"))
    product.say("hello")

    outcome = product.compact()

    assert isinstance(outcome, NothingToDo)
    assert outcome.reason
    assert len(fake.calls) == 2


def test_d6_a_prompt_that_fills_the_window_is_named_and_the_user_still_answered(
    opened: Opening, fake: StrictFake
) -> None:
    limits = {**UNCHECKED, "context_window": 30_000}
    product = opened(limits, system_prompt="p" * 112_000)
    product.most_calls = 3

    results = [product.say(f"question {number}") for number in range(3)]

    assert [result.kind for result in results] == ["completed"] * 3
    assert 1 <= len(product.data("compaction/skipped")) <= 3
    assert product.data("compaction/start") == []


UNUSABLE = {
    "nothing": Answer(""),
    "empty success": EMPTY,
    "blanks": Answer("  \n"),
    "reasoning alone": Answer("", reasoning="let me think", signature="sig"),
    "a call alone": Answer("", calls=(ToolUse("c9", "note"),), finish="tool-calls"),
    "cut off": Answer("They spoke of", finish="max-tokens"),
    "an error": Refuse(400, b'{"error": {"message": "no"}}'),
}


@pytest.mark.parametrize("answer", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_d7_an_unusable_summary_changes_nothing_and_says_so(
    opened: Opening, fake: StrictFake, answer: Answer | Refuse
) -> None:
    product = with_tools(opened(plugin=SMALL))
    product.most_calls = 5
    product.append(*turns(10, "w" * 200))
    product.say("hello")
    before = product.messages()
    # One that may pass is asked for again, twice.
    fake.will(answer, answer, answer)

    with pytest.raises(CompactionError) as caught:
        product.compact()

    fake.answers.clear()
    assert caught.value.code == "summary"
    assert product.messages() == before
    (end,) = product.data("compaction/end")
    assert end["error"]
    assert product.say("and now?").kind == "completed"


def test_d9_sixty_turns_with_long_results_move_the_prefix_four_times_at_most(
    opened: Opening, fake: StrictFake
) -> None:
    settings = {"threshold": 2_000, "head": 800, "tail": 200, "min_saving": 20_000}
    product = opened(plugin={"tool-result-pruner": settings})
    product.most_calls = 120

    def read(number: int) -> str:
        """Read a long page."""
        return f"page {number} " * 600

    product.tools = [read]
    for number in range(60):
        wanted = ToolUse(f"c{number}", "read", f'{{"number": {number}}}')
        fake.will(Answer("", calls=(wanted,), finish="tool-calls"), Answer("read"))
        product.say(f"read {number}")

    assert {result.kind for result in product.results} == {"completed"}
    texts = [request.seen.texts for request in fake.calls if request.seen is not None]
    moved = sum(
        [text.text for text in after][: len(before)] != [text.text for text in before]
        for before, after in pairwise(texts)
    )
    assert 1 <= moved <= 4
    restarted = opened(plugin={"tool-result-pruner": settings}, session_id=product.session_id)
    assert restarted.messages() == product.messages()


def test_d10_a_turn_that_begins_and_ends_while_a_summary_is_made_leaves_a_sound_log(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened(plugin=SMALL)
    product.most_calls = 3
    product.append(*turns(10, "w" * 200))
    product.say("hello")
    fake.will(replace(SUMMARY, first_byte_s=0.5))
    agent = product.agent()

    async def both() -> tuple[object, str]:
        compacting = asyncio.create_task(
            product.host.compactor().compact(product.access, CompactionWish())
        )
        while len(fake.calls) < 2:
            await asyncio.sleep(0.01)
        result = await agent.ask("meanwhile")
        outcome = await asyncio.gather(compacting, return_exceptions=True)
        await product.host.disconnect()
        return outcome[0], result.kind

    outcome, kind = run(both())

    assert kind == "completed"
    assert isinstance(outcome, Compacted | CompactionError)
    types = [event.type for event in product.log()]
    if isinstance(outcome, Compacted):
        at = types.index("compaction/summary")
        bracket = ["compaction/start", "compaction/summary", "user/message", "compaction/end"]
        assert types[at - 1 : at + 3] == bracket
    assert types.count("compaction/start") == types.count("compaction/end")


def test_d11_a_summary_of_tool_calls_is_accepted_where_tools_must_be_declared(
    opened: Opening, fake: StrictFake
) -> None:
    fake.rules = replace(fake.rules, declared=True)
    product = opened(plugin=SMALL)
    product.most_calls = 3
    product.append(*turns(20, "w" * 100, tools=2))
    product.say("hello, you have no tools")

    outcome = product.compact()

    assert isinstance(outcome, Compacted)
    assert product.say("and now?").kind == "completed"


def test_d12_summarising_again_at_once_is_a_no_op_and_hides_nothing_more(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened(plugin=SMALL)
    product.most_calls = 3
    product.append(*turns(20, "w" * 100))
    product.say("hello")

    first = product.compact()
    view = product.messages()
    second = product.compact()
    again = opened(plugin=SMALL, session_id=product.session_id)
    result = again.say("and now?")

    assert isinstance(first, Compacted)
    assert isinstance(second, NothingToDo)
    assert second.reason
    assert result.kind == "completed"
    assert again.messages()[: len(view)] == view
    assert "question 1" not in shown_texts(again)


def test_d13_a_long_history_is_taken_into_a_smaller_window_in_four_calls(
    opened: Opening, fake: StrictFake
) -> None:
    fake.rules = replace(fake.rules, max_body=128_000)
    fake.rejection = Rejection("R6")
    limits = {**UNCHECKED, "context_window": 32_000}
    product = opened(limits)
    product.most_calls = 4
    product.append(*turns(40, "w" * 8_000))
    fake.will(*[replace(SUMMARY, text=f"Part {part}.") for part in range(3)])

    result = product.say("and now?")

    assert result.kind == "completed"
    assert all(request.violation is None for request in fake.calls)


def test_d13_a_window_that_nobody_knew_is_recovered_after_the_first_refusal(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, max_chars=128_000)
    standing.under_test = {"window"}
    product = opened(UNCHECKED)
    product.most_calls = 6
    product.append(*turns(40, "w" * 5_000))

    result = product.say("and now?")

    assert result.kind == "completed"
    assert result.failure is None
    assert fake.calls[0].violation is not None


def test_d_a_window_that_nothing_fits_is_said_by_its_code_and_names_the_command(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    fake.rules = replace(fake.rules, max_chars=10)
    standing.under_test = {"window"}
    standing.has_last_message = False
    product = opened(UNCHECKED)
    product.most_calls = 1

    result = product.say("this is more than ten characters")

    assert result.failure is not None
    assert result.failure.code == FailureCode.CONTEXT_WINDOW_EXCEEDED
    assert "compact_now" in str(result.advice)


def test_d1_d12_forks_cut_at_several_places_are_each_accepted(
    opened: Opening, fake: StrictFake, standing: Standing
) -> None:
    product = with_tools(opened())
    product.append(*turns(12, "w" * 100, tools=3))
    product.say("hello")
    keeps = (0, 100, 200, 300, 500)
    product.most_calls = 1 + 2 * len(keeps)

    for keep in keeps:
        fork = product.sessions.fork(product.session_id)
        standing.sessions.add(fork)
        settings = CompactionSettings(keep_tokens=keep, min_span_tokens=50)

        async def compact(fork: str = fork, settings: CompactionSettings = settings) -> object:
            compactor = Compactor(product.host.route, settings, product.host.waterfalls)
            outcome = await compactor.compact(product.host.access(fork), CompactionWish())
            await product.host.disconnect()
            return outcome

        assert isinstance(run(compact()), Compacted)
        assert product.say("go on", session_id=fork).kind == "completed"
