"""Priced surfaces as JSON, for the checkpoints of read models that keep one."""

from everfold.projections.token_meter.surface_prices import Node, SurfacePrices
from everfold.session.frozen import Json


def dump_surface(surface: SurfacePrices) -> Json:
    """Return a surface as JSON: for each node its seq, kind, prices and image blocks."""
    return [
        [node.seq, node.kind, node.fixed, node.images_fixed, [dict(image) for image in node.images]]
        for node in surface.nodes
    ]


def load_surface(rows: Json) -> SurfacePrices:
    """Return the surface that JSON holds."""
    return SurfacePrices.of(
        Node(seq, fixed, tuple(images), images_fixed, kind)
        for seq, kind, fixed, images_fixed, images in rows
    )
