"""Being told to end: what a supervisor or a closed terminal sends ends the turn as Ctrl-C does, and the program too."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_INTERRUPTING = (signal.SIGINT, *_ENDING)

_NUDGE_S = 0.05
"""After so long without effect a signal is delivered again."""


@dataclass(slots=True)
class Ending:
    """Whether the program was told to end."""

    is_asked: bool = False


@contextmanager
def told_to_end() -> Iterator[Ending]:
    """Take signals that end programs for a Ctrl-C that the program does not survive."""
    ending = Ending()

    def end(_number: int, _frame: FrameType | None) -> None:
        ending.is_asked = True
        signal.raise_signal(signal.SIGINT)

    if threading.current_thread() is not threading.main_thread():
        yield ending
        return
    before = {number: signal.signal(number, end) for number in _ENDING}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def kept_signals() -> Iterator[None]:
    """Deliver a signal again until it has its effect: `input` may miss one.

    It looks for signals, then waits for a key: one that comes in between has none before the next
    key. Leaves it at one KeyboardInterrupt, however often Ctrl-C was pressed.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not (is_main and hasattr(signal, "pthread_kill")):
        yield
        return
    interrupted = threading.Event()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with _nudged(interrupted):
            yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _nudged(interrupted: threading.Event) -> Iterator[None]:
    """Have a thread watch for signals while the block runs."""
    came, tell = os.pipe()
    os.set_blocking(tell, False)
    watcher = threading.Thread(target=_nudge, args=(came, interrupted), daemon=True)
    before = signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    watcher.start()
    try:
        yield
    finally:
        interrupted.set()
        signal.set_wakeup_fd(before)
        os.close(tell)
        watcher.join()
        os.close(came)


def _nudge(came: int, interrupted: threading.Event) -> None:
    """Deliver the signals again whose numbers are read from `came`, until it is closed."""
    main = threading.main_thread().ident
    assert main is not None, "the main thread runs"
    while numbers := os.read(came, 64):
        for number in numbers:
            while number in _INTERRUPTING and not interrupted.wait(_NUDGE_S):
                signal.pthread_kill(main, number)
