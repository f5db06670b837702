"""A route's own limits, checked before anything is sent (R251, R253, V7)."""

from collections.abc import Iterator

from everfold.llm.budgets import ImageBudget
from everfold.routes.counting import (
    Images,
    beyond_omission,
    for_body,
    for_budget,
    offload_required,
    omittable,
    through,
)
from everfold.routes.limits import RouteLimits

_Need = tuple[str, int | None]


def check_images(images: Images, budget: ImageBudget, limits: RouteLimits) -> None:
    """Refuse pictures that exceed the budget in use or what the route takes of each.

    Args:
        budget: of the mode in which they travel: files or inline.

    Raises:
        LlmError: IMAGE_OFFLOAD_REQUIRED with the greatest count that any limit asks for; if no
            omission can help, CONTEXT_WINDOW_EXCEEDED.
    """
    if not images:
        return
    total = sum(budget.length(image.raw_bytes) for image in images)
    size = f"{len(images)} pictures of {total} bytes ({budget.representation})"
    limit = f"{_shown(budget.max_images)} pictures and {_shown(budget.max_bytes)} bytes"
    needs = [(f"{size} exceed the limit of {limit}", for_budget(images, budget))]
    _raise_greatest([*needs, *_single(images, limits), *_many(images, limits)])


def check_body(images: Images, body_bytes: int, limits: RouteLimits) -> None:
    """Refuse a body that is longer than the route takes; `body_bytes` is its exact length.

    Raises:
        LlmError: as `check_images`.
    """
    limit = limits.max_body_bytes
    if limit is None or body_bytes <= limit:
        return
    reason = f"the request takes {body_bytes} bytes, {limit} are the most"
    _raise_greatest([(reason, for_body(images, body_bytes, limit, limits.body_quantum))])


def _single(images: Images, limits: RouteLimits) -> Iterator[_Need]:
    most_bytes, most_edge = limits.max_image_bytes, limits.max_edge
    if most_bytes is not None:
        count = through(images, lambda image: image.encoded_bytes > most_bytes)
        yield f"a picture takes more than {most_bytes} encoded bytes", count
    if most_edge is not None:
        yield f"a picture is over {most_edge} pixels", through(images, lambda i: i.edge > most_edge)


def _many(images: Images, limits: RouteLimits) -> Iterator[_Need]:
    many, edge = limits.many_images, limits.many_images_edge
    if many is None or edge is None or len(images) <= many:
        return
    count = through(images, lambda image: image.edge > edge)
    fewer = len(images) - many
    if count is None or (count > fewer and fewer <= omittable(images)):
        count = fewer if fewer <= omittable(images) else None
    yield f"among more than {many} pictures one is over {edge} pixels", count


def _raise_greatest(needs: list[_Need]) -> None:
    for reason, count in needs:
        if count is None:
            raise beyond_omission(reason)
    reason, count = max(needs, key=lambda need: need[1] or 0)
    if count:
        raise offload_required(reason, count)


def _shown(limit: int | None) -> str:
    return "any number of" if limit is None else str(limit)
