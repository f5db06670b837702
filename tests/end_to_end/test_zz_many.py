"""Any sequence of turns, failures, switches, omissions, summaries, crashes and resumes leaves a sound session."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.agent.kit import unanswered
from tests.compaction.kit import pairing_faults
from tests.end_to_end.playing import ACTS, EASY, WIRES, Act, Player, Reopen, give
from tests.end_to_end.product import UNCHECKED, Product, make_profile, route_table, running
from tests.end_to_end.standing import broken_rules, check_log
from tests.field_reports.witness import Witness
from tests.providers.rules import STRICT
from tests.providers.strict_fake import StrictFake, strict_fake

LIMITS = {**UNCHECKED, "silent_failure_bytes": 1_000}
KNOWN_WINDOW = {**LIMITS, "context_window": 2_000}
"""One of the routes is summarised for before it is asked, the others after they have refused."""


@pytest.fixture(scope="module")
def provider() -> Iterator[StrictFake]:
    """One provider for all examples; it speaks every wire."""
    with strict_fake(STRICT) as running_fake:
        yield running_fake


def opened(stack: ExitStack, url: str, fake: StrictFake, session_id: str | None) -> Product:
    """Open the product with a route for each wire."""
    profile = make_profile(
        {
            wire: route_table(fake, wire, KNOWN_WINDOW if wire == "messages" else LIMITS)
            for wire in WIRES
        },
        agent={"grace_s": 1.0, "recoveries": 12},
    )
    return stack.enter_context(running(url, profile, dict.fromkeys(WIRES, fake), session_id))


def check_next_request(product: Product, fake: StrictFake, session_id: str) -> None:
    """Whatever happened, text alone is accepted and answered on every wire."""
    fake.answers.clear()
    fake.rules = EASY
    product.tools = [give]
    for wire in WIRES:
        result = product.say(f"and on {wire}?", route=wire, session_id=session_id)
        assert result.kind == "completed", result
        assert fake.last.violation is None


def check_session(product: Product, url: str, session_id: str) -> None:
    """The log restores, forks and audits clean, and every call has its answer."""
    check_log(product.sessions, session_id)
    messages = product.messages(session_id)
    log = product.log(session_id)
    assert unanswered(log) == {}
    assert pairing_faults(messages, ["declared"]) == []
    with ExitStack() as elsewhere:
        other = opened(elsewhere, url, product.fakes["chat"], session_id)
        assert other.messages() == messages
        assert other.messages(other.sessions.fork(session_id)) == messages


@settings(max_examples=250)
@given(ACTS)
def test_any_history_leaves_a_session_that_every_provider_accepts(
    provider: StrictFake, acts: Sequence[Act]
) -> None:
    provider.calls.clear()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        url = f"sqlite:///{Path(folder) / 'agents.sqlite'}?synchronous=off"
        witness = Witness([url.split("?")[0]])
        player = Player(opened(stack, url, provider, None), provider)

        for act in acts:
            player.play(act)
            witness.look()
            if isinstance(act, Reopen):
                player.product = opened(stack, url, provider, player.product.session_id)

        for session_id in sorted(player.played):
            check_session(player.product, url, session_id)
            check_next_request(player.product, provider, session_id)
            check_session(player.product, url, session_id)
        witness.check_rows()
        for call in provider.calls:
            assert broken_rules(call, provider) == []
        assert all(reason.strip() for reason in player.reasons)
