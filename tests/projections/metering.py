"""What tests of meters start from: metered logs and a route's prices."""

from collections.abc import Mapping, Sequence
from typing import Any

from everfold.projections.token_meter.meter import Meter
from everfold.session.events import Event
from tests.domain.kit import Record, log

HEADER = {"config": {"provider": "p", "model": "m"}}


def header(reason: str = "initial", **more: Any) -> tuple[str, Any]:
    """Return a `request/header`, with tools for instance."""
    return ("request/header", {"header": {**HEADER, **more}, "reason": reason})


def events(*records: Any) -> list[Event]:
    """Return the events of records that are numbered here."""
    return [Event.of(record) for record in log(*records)]


def metered(*records: Any) -> Meter:
    """Return a meter that has read these records."""
    meter = Meter()
    meter.read(events(*records))
    return meter


def hundred_each(images: Sequence[Mapping[str, Any]]) -> list[int]:
    """Price an image at 100 tokens and a placeholder at 7, as a route does."""
    return [7 if image.get("offloaded") is True else 100 for image in images]


def shadow(start: int, end: int, tokens: int, *seqs: int) -> Record:
    """Return the data of a `compaction/prune`."""
    covered = {"start": start, "end": end}
    return {
        "shadowedRange": covered,
        "shadowedSeqs": list(seqs) or sorted({start, end}),
        "shadowedTokenCount": tokens,
    }
