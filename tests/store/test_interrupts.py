"""Signals at any moment of an append: what was acknowledged is stored, and everybody can go on."""

import random
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from everfold.host.opening import open_sessions
from everfold.host.sessions import Sessions
from everfold.session.errors import StoreBusyError
from tests.host.kit import hello

# These tests need the alarm signal for themselves.
pytestmark = pytest.mark.timeout(method="thread")

INTERRUPTS = 100


def pairs(seqs: list[int]) -> Iterator[tuple[int, int]]:
    """Return the seqs of each batch of two."""
    return zip(seqs[::2], seqs[1::2], strict=True)


@contextmanager
def interrupted_soon(wait_s: float) -> Iterator[None]:
    """Raise KeyboardInterrupt in the block after a while, and again where it was swallowed."""
    is_armed = True

    def strike(number: int, frame: object) -> None:
        if is_armed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, strike)
    # Python itself swallows one that falls into a finalizer, and tells this hook; no Python runs in it.
    hook, sys.unraisablehook = sys.unraisablehook, bool
    try:
        signal.setitimer(signal.ITIMER_REAL, wait_s, 0.05)
        yield
    except KeyboardInterrupt:
        is_armed = False
    finally:
        is_armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook


def append_until_interrupted(sessions: Sessions, acknowledged: list[int], wait_s: float) -> None:
    with interrupted_soon(wait_s):
        while True:
            acknowledged.append(sessions.append_batch("s", [hello()])[0].seq)


def test_after_interrupts_everybody_can_append_and_nothing_is_lost(store_url: str) -> None:
    waits = random.Random(7)
    acknowledged: list[int] = []

    with open_sessions(store_url) as sessions, open_sessions(store_url) as others:
        sessions.create("s")
        for _ in range(INTERRUPTS):
            append_until_interrupted(sessions, acknowledged, 0.0002 + 0.02 * waits.random())
        here = sessions.append_batch("s", [hello()])[0].seq
        elsewhere = others.append_batch("s", [hello()])[0].seq

        stored = [event.seq for event in others.log("s")]

    assert elsewhere == here + 1
    assert stored == list(range(elsewhere + 1))
    assert len(acknowledged) == len(set(acknowledged))
    assert set(acknowledged) <= set(range(here))


@pytest.mark.parametrize("noted_in", ["notes", "s"])
def test_a_signal_handler_that_appends_breaks_no_batch(store_url: str, noted_in: str) -> None:
    noted: list[int] = []
    waits = random.Random(7)
    with open_sessions(store_url) as sessions:
        sessions.create("s")
        sessions.create("notes")

        def note(number: int, frame: object) -> None:
            with suppress(StoreBusyError):
                noted.append(sessions.append_batch(noted_in, [hello()])[0].seq)

        def appended() -> list[int]:
            signal.setitimer(signal.ITIMER_REAL, 0.0001 + 0.001 * waits.random())
            return [event.seq for event in sessions.append_batch("s", [hello(), hello()])]

        before = signal.signal(signal.SIGALRM, note)
        try:
            acknowledged = [seq for _ in range(300) for seq in appended()]
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.raise_signal(signal.SIGALRM)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

        stored = [event.seq for event in sessions.log("s")]
        notes = [event.seq for event in sessions.log("notes")]

    if noted_in == "s":
        stored = [seq for seq in stored if seq not in noted]
    else:
        # A handler may come amid the one before it, and be told first.
        assert (sorted(noted), stored) == (notes, list(range(600)))
    assert acknowledged == stored
    assert noted != []
    assert all(second == first + 1 for first, second in pairs(acknowledged))
