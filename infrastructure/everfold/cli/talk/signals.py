"""Being told to end: what a supervisor or a closed terminal sends ends the turn as Ctrl-C does, and the program too."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


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
