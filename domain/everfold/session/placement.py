"""Where an event asks to be put on the surface, and from which events it was made (R41 to R54)."""

from dataclasses import dataclass

from everfold.session.errors import ReplaceRangeError, SourceRefsError, SurfaceOpError
from everfold.session.events import ABSENT, EventLike
from everfold.session.frozen import Json
from everfold.session.lossless import natural

_REPLACE_KEYS = {"op", "startSeq", "endSeq"}


@dataclass(frozen=True, slots=True)
class Replace:
    """A request to take the place of the nodes from `start` to `end`, both included."""

    start: int
    end: int


def placement_of(event: EventLike) -> Replace | None:
    """Return the range that a message-producing event replaces, None for an append.

    Raises:
        SurfaceOpError: the marker is missing or malformed.
    """
    marker = event.surface_op
    if marker is ABSENT:
        raise SurfaceOpError(
            f"{event.type!r} at seq {event.seq} needs a surfaceOp: it makes a message",
            seq=event.seq,
        )
    if marker == "append":
        return None
    if not isinstance(marker, dict) or marker.keys() != _REPLACE_KEYS or marker["op"] != "replace":
        raise _malformed(event, marker)
    start, end = natural(marker["startSeq"]), natural(marker["endSeq"])
    if start is None or end is None:
        raise _malformed(event, marker)
    return Replace(start, end)


def check_unplaced(event: EventLike) -> None:
    """Refuse surface fields on an event that makes no message (R45).

    Raises:
        SurfaceOpError: it carries one, even null.
    """
    for name, value in (
        ("surfaceOp", event.surface_op),
        ("sourceEventSeqs", event.source_event_seqs),
    ):
        if value is not ABSENT:
            raise SurfaceOpError(
                f"{event.type!r} at seq {event.seq} makes no message and may not carry {name}",
                seq=event.seq,
            )


def check_earlier(event: EventLike, replace: Replace) -> None:
    """Refuse a replacement that names itself or a later event (R49)."""
    for name, seq in (("startSeq", replace.start), ("endSeq", replace.end)):
        if seq >= event.seq:
            raise ReplaceRangeError(
                f"{name} {seq} of the replacement at seq {event.seq} is not an earlier event",
                seq=event.seq,
            )


def sources_of(event: EventLike) -> frozenset[int]:
    """Return the seqs that an event cites, none if it cites none.

    Raises:
        SourceRefsError: not a list, empty, no seqs, repeated, not earlier, or on an assistant
            message (R50 to R53, in that order).
    """
    sources = event.source_event_seqs
    if sources is ABSENT:
        return frozenset()
    if event.type == "assistant/message":
        raise _bad_sources(event, "an assistant message may not cite sources")
    if not isinstance(sources, list):
        raise _bad_sources(event, "sourceEventSeqs is not a list")
    if not sources:
        raise _bad_sources(event, "sourceEventSeqs is empty; leave it out")
    seqs = [_source(event, value) for value in sources]
    cited = frozenset(seqs)
    if len(cited) != len(seqs):
        raise _bad_sources(event, "sourceEventSeqs names an event twice")
    if max(cited) >= event.seq:
        raise _bad_sources(event, f"source {max(cited)} is not an earlier event")
    return cited


def _source(event: EventLike, value: Json) -> int:
    seq = natural(value)
    if seq is None:
        raise _bad_sources(event, f"source {value!r} is not a seq")
    return seq


def _bad_sources(event: EventLike, reason: str) -> SourceRefsError:
    return SourceRefsError(f"{event.type!r} at seq {event.seq}: {reason}", seq=event.seq)


def _malformed(event: EventLike, marker: Json) -> SurfaceOpError:
    return SurfaceOpError(
        f"surfaceOp {marker!r} of {event.type!r} at seq {event.seq} is neither 'append' nor "
        "an object of op 'replace', startSeq and endSeq",
        seq=event.seq,
    )
