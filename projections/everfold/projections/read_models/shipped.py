"""The read models that come with everfold."""

from typing import Any

from everfold.plugins.read_models import ReadModel, ReadModels
from everfold.projections.read_models.breakdown import CONTEXT_BREAKDOWN
from everfold.projections.read_models.images import IMAGES
from everfold.projections.read_models.pressure import CONTEXT_PRESSURE
from everfold.projections.read_models.title import TITLE
from everfold.projections.read_models.usage import USAGE

SHIPPED: tuple[ReadModel[Any], ...] = (TITLE, USAGE, IMAGES, CONTEXT_PRESSURE, CONTEXT_BREAKDOWN)


def shipped_models() -> ReadModels:
    """Return a fresh registry of all shipped read models."""
    return ReadModels(SHIPPED)
