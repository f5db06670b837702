"""The options in the query of a store URL."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import SplitResult, parse_qsl, urlsplit

from everfold.session.errors import StoreUrlError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Options:
    """The query of a store URL, read by name, each value checked."""

    values: Mapping[str, str]

    def read(self, name: str, default: T, parse: Callable[[str], T], allowed: str) -> T:
        """Return one option's value.

        Args:
            parse: raises ValueError for what is not allowed.
            allowed: what is, for the message.

        Raises:
            StoreUrlError: the value is not allowed.
        """
        text = self.values.get(name)
        if text is None:
            return default
        try:
            return parse(text)
        except ValueError as error:
            raise StoreUrlError(f"store URL option {name}={text!r} is not {allowed}") from error

    def lock_timeout_s(self) -> float:
        """Return how long to wait for other writers, in seconds."""
        return self.read("lock_timeout_s", 30.0, _positive, "a number of seconds above 0")

    def pool_size(self) -> int:
        """Return how many connections may be used at once."""
        return self.read("pool_size", 10, _count, "a whole number from 1")


def split(url: str) -> SplitResult:
    """Return the parts of a URL.

    Raises:
        StoreUrlError: it has none; the URL is not in the message, as it may hold a password.
    """
    with suppress(ValueError):
        return urlsplit(url)
    raise StoreUrlError("the store URL is not understood: its host is malformed")


def parse_options(query: str, allowed: tuple[str, ...]) -> dict[str, str]:
    """Return the options of a URL's query.

    Raises:
        StoreUrlError: an option is not one of the allowed ones, or stands there twice.
    """
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in allowed:
            raise StoreUrlError(
                f"store URL option {name!r} is unknown; allowed are {', '.join(allowed)}"
            )
        if name in options:
            raise StoreUrlError(f"store URL option {name!r} is given twice")
        options[name] = value
    return options


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e6:
        raise ValueError(text)
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number
