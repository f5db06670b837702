"""Read model `images`: every image that a session ever showed, with its state and who decided it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from everfold.llm.images import is_omitted
from everfold.plugins.read_models import ReadModel
from everfold.projections.read_models.priced import dump_surface, load_surface
from everfold.projections.token_meter.surface_fold import (
    MARKS,
    SURFACE_TYPES,
    covered_by,
    surface_after,
)
from everfold.projections.token_meter.surface_prices import Node, SurfacePrices
from everfold.session.events import EventLike
from everfold.session.frozen import Json
from everfold.session.growing import Growing

State = Literal["retained", "omitted", "output", "hidden"]


@dataclass(frozen=True, slots=True)
class Hidden:
    """A node with images that a replacement hid."""

    node: Node
    by: int


@dataclass(frozen=True, slots=True)
class ImagesState:
    """The priced surface, what was hidden from it, and the newest decision about each image."""

    surface: SurfacePrices = field(default_factory=SurfacePrices)
    hidden: Growing[Hidden] = field(default_factory=Growing[Hidden])
    decided: Mapping[tuple[int, int], int] = field(default_factory=dict)


def _fold(state: ImagesState, event: EventLike) -> ImagesState:
    surface = surface_after(state.surface, event)
    if event.type in MARKS:
        fresh = {
            (int(target["seq"]), int(index)): event.seq
            for target in event.data["targets"]
            for index in target["imageIndexes"]
        }
        return replace(state, surface=surface, decided={**state.decided, **fresh})
    covered = covered_by(event)
    if covered is None:
        return replace(state, surface=surface)
    gone = [Hidden(node, event.seq) for node in _between(state.surface, *covered) if node.images]
    return replace(state, surface=surface, hidden=state.hidden.extended(gone))


def _between(surface: SurfacePrices, start: int, end: int) -> list[Node]:
    first, last = surface.position(start), surface.position(end)
    assert first is not None, "surface_after refuses unknown ranges"
    assert last is not None, "surface_after refuses unknown ranges"
    return list(surface.nodes[first : last + 1])


def _view(state: ImagesState) -> Json:
    """Return hidden occurrences in the order in which they were hidden, then those in surface order."""
    rows = [row for gone in state.hidden for row in _rows(gone.node, state, gone.by)]
    rows += [row for node in state.surface.with_images for row in _rows(node, state, None)]
    return rows


def _rows(node: Node, state: ImagesState, hidden_by: int | None) -> Iterator[dict[str, Any]]:
    for index, image in enumerate(node.images):
        decided = state.decided.get((node.seq, index))
        if decided is None and is_omitted(image):
            # A logged copy that carries the mark itself (R216).
            decided = node.seq
        yield {
            "seq": node.seq,
            "index": index,
            "attachment": image.get("attachment"),
            "state": _state(node, image, hidden_by),
            "isOmitted": is_omitted(image),
            "decidedBy": decided,
            "hiddenBy": hidden_by,
        }


def _state(node: Node, image: Mapping[str, Any], hidden_by: int | None) -> State:
    if hidden_by is not None:
        return "hidden"
    if node.kind not in ("user/message", "tool/result"):
        return "output"
    return "omitted" if is_omitted(image) else "retained"


def _dump(state: ImagesState) -> Json:
    gone = SurfacePrices.of(hidden.node for hidden in state.hidden)
    return {
        "surface": dump_surface(state.surface),
        "hidden": dump_surface(gone),
        "hiddenBy": [hidden.by for hidden in state.hidden],
        "decided": [[seq, index, by] for (seq, index), by in state.decided.items()],
    }


def _load(state: Json) -> ImagesState:
    gone = load_surface(state["hidden"]).nodes
    pairs = zip(gone, state["hiddenBy"], strict=True)
    return ImagesState(
        load_surface(state["surface"]),
        Growing(Hidden(node, by) for node, by in pairs),
        {(seq, index): by for seq, index, by in state["decided"]},
    )


IMAGES = ReadModel(
    name="images",
    version=1,
    types=SURFACE_TYPES,
    start=ImagesState,
    fold=_fold,
    dump=_dump,
    load=_load,
    view=_view,
)
