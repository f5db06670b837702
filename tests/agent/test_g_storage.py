"""Field report G3: a conversation of 500 turns of 2 kB of text takes at most three times its text.

Text is what the user typed and what the model answered, nothing else; the database is all of it:
its file or tables with indexes, snapshots, and what it keeps beside them.
"""

import random
from collections.abc import Callable, Iterator

import pytest

from everfold.agent.agent import Agent
from everfold.agent.settings import AgentSettings, ModelSettings
from everfold.agent.sync import SyncAgent
from everfold.host.means import fresh_id
from everfold.host.opening import open_sessions
from everfold.llm.chunks import BlockEnd, BlockStart, Finish, TextDelta, Usage
from everfold.routes.scripted import Reply, ScriptedRoute
from everfold.session.deciding import DecisionMeans
from tests.store.test_field_g import stored_bytes

TURNS = 500
TURN_CHARS = 2_000
SETTINGS = AgentSettings(ModelSettings("scripted", "demo"), "You help at the harbour.")


def lengths(chance: random.Random, mean: int) -> list[int]:
    """Return how many characters somebody says in each turn: no two turns are alike."""
    return [chance.randint(mean // 2, mean * 3 // 2) for _ in range(TURNS)]


def words(chance: random.Random, count: int) -> str:
    """Return prose of so many characters that no compressor makes much of."""
    found = ""
    while len(found) < count:
        length = chance.choice((2, 3, 3, 4, 5, 6, 8, 11))
        found += "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=length)) + " "
    return found[:count]


def tokens(chance: random.Random, text: str) -> Iterator[TextDelta]:
    """Yield a text in pieces as small as those that models stream."""
    begin = 0
    while begin < len(text):
        end = begin + chance.choice((2, 3, 4, 4, 5, 5, 6, 9))
        yield TextDelta(0, text[begin:end])
        begin = end


def reply(chance: random.Random, text: str) -> Reply:
    """Return an answer in small pieces."""
    block = BlockEnd(0, {"type": "text", "text": text})
    start, usage = BlockStart(0, "text"), Usage(812, 431)
    return Reply((start, *tokens(chance, text), block, usage, Finish("stop")))


def ticking(chance: random.Random) -> Callable[[], int]:
    """Return a clock that goes on by 5 to 60 ms whenever it is looked at."""
    time = 1_790_000_000_000

    def clock() -> int:
        nonlocal time
        time += chance.randint(5, 60)
        return time

    return clock


@pytest.mark.parametrize("typed", [TURN_CHARS - 40, TURN_CHARS // 2, 40])
def test_g3_five_hundred_turns_take_at_most_three_times_their_text(
    store_url: str, typed: int
) -> None:
    """Whoever wrote the text of a turn: the user, the model, or both of them half of it."""
    chance = random.Random(3)
    questions = [words(chance, count) for count in lengths(chance, typed)]
    answers = [words(chance, count) for count in lengths(chance, TURN_CHARS - typed)]
    route = ScriptedRoute([reply(chance, text) for text in answers])

    with open_sessions(store_url, means=DecisionMeans(ticking(chance), fresh_id)) as sessions:
        agent = Agent(sessions, sessions.create("talk").id, route, SETTINGS)
        with SyncAgent(agent) as talk:
            said = [talk.ask(question).text for question in questions]
        assert sessions.store.load_snapshot("talk") is not None

    assert said == answers
    text = sum(map(len, [*questions, *answers]))
    assert abs(text - TURNS * TURN_CHARS) < 50_000
    assert text < stored_bytes(store_url) <= 3 * text
