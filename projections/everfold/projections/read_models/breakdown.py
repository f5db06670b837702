"""Read model `context-breakdown`: what takes up the context, in tokens, images and bytes (R310, A5)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from everfold.llm.images import is_omitted
from everfold.plugins.read_models import ReadModel
from everfold.projections.read_models.priced import dump_surface, load_surface
from everfold.projections.token_meter.prices import tools_price
from everfold.projections.token_meter.surface_fold import SURFACE_TYPES, surface_after
from everfold.projections.token_meter.surface_prices import Image, SurfacePrices
from everfold.session.events import EventLike
from everfold.session.frozen import Json

KINDS = {
    "system/message": "system",
    "user/message": "user",
    "assistant/message": "assistant",
    "tool/result": "toolResults",
}
_SUMMARY = "summaries"
_CHECKPOINTS = "compact"


@dataclass(frozen=True, slots=True)
class BreakdownState:
    """The priced surface, by kind, and the price of the tools."""

    surface: SurfacePrices = field(default_factory=SurfacePrices)
    tools: int = 0


def _fold(state: BreakdownState, event: EventLike) -> BreakdownState:
    if event.type == "request/header":
        return replace(state, tools=tools_price(event.data["header"].get("tools")))
    return replace(state, surface=surface_after(state.surface, event, _kind))


def _kind(event: EventLike) -> str:
    source = event.data.get("source") if event.type == "user/message" else None
    is_summary = isinstance(source, Mapping) and source.get("plugin") == _CHECKPOINTS
    return _SUMMARY if is_summary else KINDS[event.type]


def _view(state: BreakdownState) -> Json:
    """Return tokens by kind, those of images apart; counts and bytes of the images."""
    tokens = dict.fromkeys((*KINDS.values(), _SUMMARY), 0)
    for node in state.surface.nodes:
        tokens[node.kind] += node.fixed - node.images_fixed
    images = [image for node in state.surface.with_images for image in node.images]
    kept = [image for image in images if not is_omitted(image)]
    image_tokens = sum(node.images_fixed for node in state.surface.with_images)
    return {
        "tokens": {**tokens, "images": image_tokens, "tools": state.tools},
        "totalTokens": state.surface.fixed + state.tools,
        "messageCount": len(state.surface.nodes),
        "imageCount": len(kept),
        "omittedImageCount": len(images) - len(kept),
        "imageBytes": sum(map(_bytes, kept)),
    }


def _bytes(image: Image) -> int:
    attachment = image.get("attachment")
    size = attachment.get("bytes") if isinstance(attachment, Mapping) else None
    return int(size) if isinstance(size, (int, float)) else 0


def _dump(state: BreakdownState) -> Json:
    return {"surface": dump_surface(state.surface), "tools": state.tools}


def _load(state: Json) -> BreakdownState:
    return BreakdownState(load_surface(state["surface"]), state["tools"])


CONTEXT_BREAKDOWN = ReadModel(
    name="context-breakdown",
    version=5,
    types=SURFACE_TYPES | {"request/header"},
    start=BreakdownState,
    fold=_fold,
    dump=_dump,
    load=_load,
    view=_view,
)
