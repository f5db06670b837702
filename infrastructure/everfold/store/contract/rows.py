"""Rows to store: plain ones, each with an event id of its own, for tests of a store."""

import uuid
from collections.abc import Sequence

import orjson

from everfold.session.events import (
    CREATED_TOPIC,
    PLAIN_PLACEMENT,
    Recorded,
    state_bytes,
    topic_of,
)
from everfold.session.ids import HEADER_VERSION

TIME_MS = 1_700_000_000_000
MESSAGE = "user/message"


def row(
    stream_id: str,
    version: int,
    *,
    type_: str = MESSAGE,
    text: str = "hello",
    event_id: str | None = None,
    ignorable: bool = False,
) -> Recorded:
    """Return one row, version 1 is a header; the event id is new unless it is given."""
    is_header = version == HEADER_VERSION
    state = state_bytes(
        orjson.dumps({"text": text}),
        event_id=event_id or uuid.uuid4().hex,
        time_ms=TIME_MS,
        placement=b"" if is_header else PLAIN_PLACEMENT,
    )
    topic = CREATED_TOPIC if is_header else topic_of(type_, ignorable=ignorable)
    return Recorded(stream_id, version, topic, state)


def rows(
    stream_id: str, first: int, last: int, *, type_: str = MESSAGE, text: str = "hello"
) -> list[Recorded]:
    """Return the rows with the versions `first` to `last`, all with the same text."""
    return [row(stream_id, version, type_=type_, text=text) for version in range(first, last + 1)]


def versions(events: Sequence[Recorded]) -> list[int]:
    """Return the stream versions of the rows."""
    return [event.originator_version for event in events]
