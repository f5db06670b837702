"""How many of the oldest images must go so that a request fits its route (group Q)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Representation = Literal["raw", "base64"]


class BudgetError(ValueError):
    """A budget that makes no sense; the message names the field."""

    code = "budget"


class UnavoidableExcessError(ValueError):
    """What no omission can remove is over a limit by itself (V7)."""

    code = "unavoidable-excess"


@dataclass(frozen=True, slots=True)
class ImageBudget:
    """What a route takes (R238, R249).

    Attributes:
        representation: how images travel; `max_bytes` is after base64 where the route uses it.
        max_bytes: most bytes of all images of a request; None for no limit.
        max_images: most images of a request; None for no limit.
        byte_quantum: bytes are omitted in whole multiples of this.
        count_quantum: images are omitted in whole multiples of this.

    Raises:
        BudgetError: a limit is negative, or a quantum below 1.
    """

    representation: Representation = "raw"
    max_bytes: int | None = None
    max_images: int | None = None
    byte_quantum: int = 1
    count_quantum: int = 1

    def __post_init__(self) -> None:
        if self.representation not in ("raw", "base64"):
            raise BudgetError(f"representation {self.representation!r} is not 'raw' or 'base64'")
        _check("bytes", self.max_bytes, self.byte_quantum)
        _check("images", self.max_images, self.count_quantum)

    def length(self, raw_bytes: int) -> int:
        """Return the bytes that an image of `raw_bytes` takes in a request (R240)."""
        return -(-raw_bytes // 3) * 4 if self.representation == "base64" else raw_bytes


def required_offload(lengths: Sequence[int], budget: ImageBudget) -> int:
    """Return how many of the oldest images must go, 0 to `len(lengths)`.

    Args:
        lengths: raw bytes of each retained image as it is sent, oldest first.
        budget: the route's limits.

    Source: R239 to R246.
    """
    encoded = [budget.length(length) for length in lengths]
    bytes_goal = _goal(sum(encoded), budget.max_bytes, budget.byte_quantum)
    count_goal = _goal(len(encoded), budget.max_images, budget.count_quantum)
    if bytes_goal == 0 and count_goal == 0:
        return 0
    removed = 0
    for count, length in enumerate(encoded, start=1):
        removed += length
        if count >= count_goal and _is_met(removed, bytes_goal, budget.byte_quantum):
            return count
    return len(encoded)


def required_beside(removable: Sequence[int], fixed: Sequence[int], budget: ImageBudget) -> int:
    """Return how many of the oldest removable images must go beside those that cannot (V7).

    Args:
        removable: raw bytes of each retained input image, oldest first.
        fixed: raw bytes of each image that no omission removes: those that a model made.

    Raises:
        UnavoidableExcessError: `fixed` alone is over a limit, so no omission helps.
    """
    fixed_bytes = sum(map(budget.length, fixed))
    _check_fixed("bytes", fixed_bytes, budget.max_bytes)
    _check_fixed("images", len(fixed), budget.max_images)
    left = replace(
        budget,
        max_bytes=None if budget.max_bytes is None else budget.max_bytes - fixed_bytes,
        max_images=None if budget.max_images is None else budget.max_images - len(fixed),
    )
    return required_offload(removable, left)


def _check_fixed(name: str, total: int, limit: int | None) -> None:
    if limit is not None and total > limit:
        raise UnavoidableExcessError(
            f"images that the model made take {total} {name}, over the route's limit of {limit}; "
            "omitting others cannot help: compact the history or use another route"
        )


def _goal(total: int, limit: int | None, quantum: int) -> int:
    """Return what must go: the excess over the limit in whole quanta (R241, R242)."""
    if limit is None or total <= limit:
        return 0
    return -(-(total - limit) // quantum) * quantum


def _is_met(removed: int, goal: int, quantum: int) -> bool:
    """Tell whether enough bytes are gone; with a quantum above 1 more than the goal must go (R244)."""
    return goal == 0 or (removed >= goal if quantum == 1 else removed > goal)


def _check(name: str, limit: int | None, quantum: int) -> None:
    if limit is not None and limit < 0:
        raise BudgetError(f"the limit of {name} is {limit}, below 0")
    if quantum < 1:
        raise BudgetError(f"the quantum of {name} is {quantum}, below 1")
