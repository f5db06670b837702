"""Reports from the field, group D: what rewriting of history may do to the log and its readers."""

import json
import os
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection

import pytest

from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions
from everfold.session.deciding import AppendEvent, replacement
from everfold.session.errors import ReplaceCoverageError, SurfaceError
from tests.cli.conftest import Run
from tests.domain.kit import text, user
from tests.field_reports.kit import asks, names, names_elsewhere, result, told, turn
from tests.field_reports.witness import Witness
from tests.host.kit import hello, types
from tests.processes import PATIENCE_S, Worker, run_at_once


def greetings(sessions: Sessions, count: int) -> None:
    """Make a session of so many messages."""
    sessions.create("s")
    sessions.append_batch("s", [hello(f"u-{number}") for number in range(count)])


def summary_of(nodes: Sequence[int], name: str = "summary") -> AppendEvent:
    """Return the wish to replace these nodes by a summary."""
    data = user(name, text(f"{len(nodes)} messages"))
    return replacement("user/message", data, start=nodes[0], end=nodes[-1], sources=list(nodes))


def test_d2_reads_count_exactly_and_the_models_view_keeps_pairs_whole(
    store_url: str, sessions: Sessions, everfold: Run
) -> None:
    """A limit is one of reading for people; what the model sees has none that could split a pair."""
    sessions.create("s")
    sessions.append_batch("s", [*asks("c1"), result("c1"), *turn(2)[2:3]])
    whole = ["u-1", "a-1", "r-c1", "a-2"]

    tails = [
        json.loads(everfold("show", "s", "--last", str(n), "--json", "--store", store_url).out)
        for n in range(1, 5)
    ]

    assert [[each["message"]["id"] for each in tail["messages"]] for tail in tails] == [
        whole[-n:] for n in range(1, 5)
    ]
    assert names(sessions, "s") == whole


def test_d3_a_summary_hides_what_it_covers_and_nothing_else(
    sessions: Sessions, witness: Witness
) -> None:
    greetings(sessions, 100)
    read = [event.seq for event in sessions.log("s", last=9)]
    witness.look()

    with pytest.raises(ReplaceCoverageError):
        sessions.append_batch(
            "s",
            [replacement("user/message", user("all"), start=0, end=99, sources=[*read, 99])],
        )
    sessions.append_batch("s", [summary_of(read)])

    assert names(sessions, "s") == ["summary", *(f"u-{number}" for number in range(10, 100))]
    assert len(types(sessions, "s")) == 101


def start_a_call(url: str, pipe: Connection) -> None:
    """Start a tool call, say so, and be killed."""
    with open_sessions(url) as sessions:
        sessions.append_batch("s", asks("c7"))
        pipe.send("running")
        os.kill(os.getpid(), signal.SIGKILL)


def resume_and_answer(url: str, pipe: Connection) -> None:
    """Take the session over, run a turn, say so, and be killed."""
    with open_sessions(url) as sessions:
        sessions.resume("s")
        sessions.append_batch("s", turn(2))
        pipe.send("answered")
        os.kill(os.getpid(), signal.SIGKILL)


def resume_again(url: str) -> None:
    """Take the session over once more."""
    with open_sessions(url) as sessions:
        sessions.resume("s")
        sessions.append_batch("s", turn(3))


def test_d8_an_interrupted_call_is_answered_once_in_the_log(
    store_url: str, sessions: Sessions
) -> None:
    sessions.create("s")
    for work, word in ((start_a_call, "running"), (resume_and_answer, "answered")):
        killed: Worker[None] = Worker(work, store_url, reports=True)
        assert told(killed.pipe) == word
        killed.process.join(PATIENCE_S)

    Worker(resume_again, store_url).result()

    results = [event.data for event in sessions.log("s") if event.type == "tool/result"]
    (answer,) = results
    assert answer["message"]["source"]["callId"] == "c7"
    assert answer["error"]["code"] == "TOOL_OUTCOME_UNKNOWN"
    words = answer["message"]["content"][0]["content"][0]["text"]
    assert "unknown" in words
    assert [name for name in names(sessions, "s") if name.startswith("u-")] == ["u-1", "u-2", "u-3"]


def summarise(url: str, name: str) -> str:
    """Compact the first six messages; a process that comes second is refused, not planned anew."""
    with open_sessions(url) as sessions:
        try:
            sessions.append_batch("s", [summary_of(range(6), name)])
        except SurfaceError as refusal:
            return refusal.code
        return "stored"


def test_d12_of_two_compactions_at_once_one_is_stored(
    store_url: str, sessions: Sessions, everfold: Run
) -> None:
    greetings(sessions, 8)

    outcomes = run_at_once(summarise, [(store_url, f"summary-{name}") for name in "pq"])

    (summary,) = [name for name in names(sessions, "s") if name.startswith("summary")]
    views = {
        "live": names(sessions, "s"),
        "restored": Worker(names_elsewhere, store_url, "s").result(),
        "shown": [
            each["message"]["id"]
            for each in json.loads(everfold("show", "s", "--json", "--store", store_url).out)[
                "messages"
            ]
        ],
    }
    assert views == {view: [summary, "u-6", "u-7"] for view in views}
    assert sorted(outcomes) == ["replace-range", "stored"]
    assert len(types(sessions, "s")) == 9


def test_d12_no_covered_message_comes_back(sessions: Sessions, everfold: Run) -> None:
    greetings(sessions, 6)
    sessions.append_batch("s", [summary_of([0, 1, 2, 3])])

    with pytest.raises(SurfaceError):
        sessions.append_batch("s", [summary_of([0, 1, 2, 3], "again")])
    sessions.resume("s")
    sessions.append_batch("s", [hello("next")])

    assert names(sessions, "s") == ["summary", "u-4", "u-5", "next"]
