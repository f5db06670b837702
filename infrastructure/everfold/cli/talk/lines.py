"""Reading what a person types, or what is piped in, a message at a time."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from io import TextIOWrapper

from everfold.cli.talk.host import note
from everfold.cli.talk.signals import Ending, kept_signals

PROMPT = "> "
_MORE = "… "


def lines(ending: Ending, *, is_interactive: bool) -> Iterator[str]:
    """Yield messages until the input ends (Ctrl-D); a backslash at a line's end joins the next one.

    Ctrl-C at the prompt drops what was typed.
    """
    if is_interactive:
        yield from _typed(ending)
    elif sys.stdin is not None:
        yield from _piped()


def _typed(ending: Ending) -> Iterator[str]:
    with suppress(ImportError):
        # Gives `input` editing and a history.
        import readline  # noqa: F401
    waiting: list[str] = []
    while True:
        try:
            with kept_signals():
                line = input(_MORE if waiting else PROMPT)
            if ending.is_asked:
                raise KeyboardInterrupt
        except EOFError:
            sys.stdout.write("\n")
            return
        except KeyboardInterrupt:
            if ending.is_asked:
                raise
            sys.stdout.write("\n")
            note("Ctrl-D or /quit leaves")
            waiting = []
            continue
        waiting.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            yield "\n".join(waiting)
            waiting = []


def _piped() -> Iterator[str]:
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
    waiting: list[str] = []
    for line in sys.stdin:
        text = line.rstrip("\r\n")
        waiting.append(text.removesuffix("\\"))
        if not text.endswith("\\"):
            yield "\n".join(waiting)
            waiting = []
    if waiting:
        yield "\n".join(waiting)
