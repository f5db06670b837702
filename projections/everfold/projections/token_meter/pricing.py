"""What a route charges for images, in the form that the meter asks for (R304)."""

from collections.abc import Sequence

from everfold.llm.route import Route
from everfold.projections.token_meter.surface_prices import Image, ImagePricing


def route_pricing(route: Route, model: str) -> ImagePricing:
    """Return the prices of image blocks for one model of a route."""

    def price(images: Sequence[Image]) -> Sequence[int]:
        return route.image_tokens(model, images)

    return price
