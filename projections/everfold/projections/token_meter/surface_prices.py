"""The nodes of a surface with their prices, as a value that is cheap to keep."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everfold.llm.images import images
from everfold.projections.token_meter.errors import MeterError
from everfold.projections.token_meter.prices import image_price, message_price
from everfold.session.growing import Growing

Image = Mapping[str, Any]
ImagePricing = Callable[[Sequence[Image]], Sequence[int]]
"""Gives the price of each image block, in order; an omitted one costs its placeholder (R304)."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the surface.

    Attributes:
        fixed: structural price; an omission does not change it (R302).
        images: its image blocks in traversal order, marked as they are now.
        images_fixed: what of `fixed` is for the images.
        kind: the type of its event.
    """

    seq: int
    fixed: int
    images: tuple[Image, ...] = ()
    images_fixed: int = 0
    kind: str = ""

    @classmethod
    def of(cls, seq: int, kind: str, message: Any) -> "Node":
        """Return the node of a message."""
        body = message if isinstance(message, dict) else {}
        content = body.get("content")
        shown = tuple(images(content)) if isinstance(content, list) else ()
        return cls(seq, message_price(body), shown, sum(map(image_price, shown)), kind)

    def marked(self, indexes: Collection[int], *, omitted: bool) -> "Node":
        """Return the node with some of its images omitted, or shown again.

        Raises:
            MeterError: an index is beyond the images.
        """
        for index in indexes:
            if not 0 <= index < len(self.images):
                raise MeterError(
                    f"image {index} of seq {self.seq} is beyond its {len(self.images)} image(s)",
                    seq=self.seq,
                )
        changed = tuple(
            _marked(image, omitted) if place in indexes else image
            for place, image in enumerate(self.images)
        )
        return Node(self.seq, self.fixed, changed, self.images_fixed, self.kind)


def _marked(image: Image, omitted: bool) -> Image:
    bare = {name: value for name, value in image.items() if name != "offloaded"}
    return {**bare, "offloaded": True} if omitted else bare


@dataclass(frozen=True, slots=True)
class SurfacePrices:
    """The priced nodes of a surface, in surface order; a value (R303).

    Attributes:
        fixed: the structural price of all nodes.
        with_images: the nodes that hold images.
    """

    nodes: Growing[Node] = field(default_factory=Growing[Node])
    with_images: Growing[Node] = field(default_factory=Growing[Node])
    fixed: int = 0

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> "SurfacePrices":
        """Return the prices of these nodes."""
        every = Growing(nodes)
        imaged = Growing(node for node in every if node.images)
        return cls(every, imaged, sum(node.fixed for node in every))

    def appended(self, node: Node) -> "SurfacePrices":
        """Return these prices with a node at the end."""
        imaged = self.with_images.extended((node,)) if node.images else self.with_images
        return SurfacePrices(self.nodes.extended((node,)), imaged, self.fixed + node.fixed)

    def replaced(self, start: int, end: int, node: Node) -> "SurfacePrices":
        """Return these prices with a node in place of those from seq `start` to seq `end`.

        Raises:
            MeterError: they bound no range of the surface (R306).
        """
        first, last = self.position(start), self.position(end)
        if first is None or last is None or first > last:
            raise MeterError(
                f"the replacement at seq {node.seq} covers {start} to {end}, "
                "which is no range of the metered surface",
                seq=node.seq,
            )
        return SurfacePrices.of([*self.nodes[:first], node, *self.nodes[last + 1 :]])

    def marked(self, seq: int, indexes: Collection[int], *, omitted: bool) -> "SurfacePrices":
        """Return these prices with images of one node omitted, or shown again.

        Raises:
            MeterError: no such node, or no such image.
        """
        place = self.position(seq)
        if place is None:
            raise MeterError(f"the node {seq} is not on the metered surface", seq=seq)
        node = self.nodes[place].marked(indexes, omitted=omitted)
        return SurfacePrices.of([*self.nodes[:place], node, *self.nodes[place + 1 :]])

    def position(self, seq: int) -> int | None:
        """Return the place of a node in surface order, None if it is not there."""
        return next((at for at, node in enumerate(self.nodes) if node.seq == seq), None)

    def price(self, pricing: ImagePricing | None = None) -> int:
        """Return the price of all nodes, images as the route prices them.

        Raises:
            MeterError: the route gave another number of prices than there are images (R305).
        """
        return self.fixed + image_difference(self.with_images, pricing)


def image_difference(nodes: Iterable[Node], pricing: ImagePricing | None) -> int:
    """Return how much more the images of these nodes cost on a route than structurally (R304)."""
    imaged = [node for node in nodes if node.images]
    if pricing is None or not imaged:
        return 0
    blocks = [image for node in imaged for image in node.images]
    prices = pricing(blocks)
    if len(prices) != len(blocks):
        raise MeterError(f"the route gave {len(prices)} price(s) for {len(blocks)} image(s)")
    return sum(prices) - sum(node.images_fixed for node in imaged)
