"""Tool-call ids as a provider takes them, from whatever stands in the log (field reports M2, M5)."""

import hashlib
import re
import string
from collections.abc import Sequence

from everfold.routes.limits import ToolIds

_DIGITS = string.digits + string.ascii_letters
_DERIVED_LENGTH = 24


class WireIds:
    """Gives each call of a request, in order, an id that the provider takes and no other call has.

    An id that conforms and was not given yet stays as it is. Another one is derived from the
    original and from how often it was seen, so that a longer history, a restart or another process
    give the same. Letters and digits alone are derived: every provider's rule allows them.
    """

    def __init__(self, rule: ToolIds) -> None:
        self._rule = rule
        self._conforms = re.compile(f"[{rule.alphabet}]+")
        self._given: set[str] = set()
        self._seen: dict[str, int] = {}

    def give(self, original: str) -> str:
        """Return the id of the next call."""
        occurrence = self._seen.get(original, 0)
        self._seen[original] = occurrence + 1
        candidate, attempt = original, 0
        while not self._is_free(candidate):
            candidate = self._derived(original, occurrence, attempt)
            attempt += 1
        self._given.add(candidate)
        return candidate

    def take_back(self, originals: Sequence[str], given: Sequence[str]) -> None:
        """Undo the latest calls of `give`, as if they had not been made."""
        self._given.difference_update(given)
        for original in originals:
            self._seen[original] -= 1

    def _is_free(self, candidate: str) -> bool:
        if candidate in self._given or self._conforms.fullmatch(candidate) is None:
            return False
        if self._rule.exact_length is not None:
            return len(candidate) == self._rule.exact_length
        return len(candidate) <= self._rule.max_length

    def _derived(self, original: str, occurrence: int, attempt: int) -> str:
        key = f"{occurrence}\0{attempt}\0{original}".encode("utf-8", "surrogatepass")
        number = int.from_bytes(hashlib.sha256(key).digest())
        length = self._rule.exact_length or min(self._rule.max_length, _DERIVED_LENGTH)
        digits = []
        for _ in range(length):
            number, digit = divmod(number, len(_DIGITS))
            digits.append(_DIGITS[digit])
        return "".join(digits)
