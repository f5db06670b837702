"""What the domain's tests start from: small messages, records, sessions, and what can be seen of one."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from everfold.projections.image_offload.projection import IMAGE_OFFLOAD
from everfold.session.composition import Composition
from everfold.session.deciding import MAX_EVENT_BYTES, AppendEvent, DecisionMeans
from everfold.session.events import Recorded
from everfold.session.frozen import Json, thaw
from everfold.session.projection import MessageProjection
from everfold.session.session import Session

Record = dict[str, Any]
APPEND: Mapping[str, Json] = {"surfaceOp": "append"}
HEADER: Mapping[str, Json] = {"version": 3, "id": "s", "createdAt": 0, "isSeeded": False}


def counting_means(max_event_bytes: int = MAX_EVENT_BYTES) -> DecisionMeans:
    """Return a clock and ids that count."""
    ids, times = count(1), count(1_723_000_000_000)
    return DecisionMeans(lambda: next(times), lambda: f"id-{next(ids)}", max_event_bytes)


def composition(*more: MessageProjection) -> Composition:
    """Return a composition of image/offload and these."""
    return Composition((IMAGE_OFFLOAD, *more))


def new_session(*more: MessageProjection, header: Mapping[str, Json] = HEADER) -> Session:
    """Return an empty session."""
    return Session.create(header, composition(*more), counting_means())


def text(value: str) -> Record:
    """Return a text block."""
    return {"type": "text", "text": value}


def image(number: int = 0, **more: Json) -> Record:
    """Return an image block."""
    attachment = {
        "attachmentId": f"sha256:{number:064x}",
        "mediaType": "image/png",
        "bytes": 1000 + number,
        "width": 3,
        "height": 2,
    }
    return {"type": "image", "attachment": attachment, **more}


def user(id_: str = "u", *content: Json) -> Record:
    """Return the data of a `user/message`."""
    return {"id": id_, "role": "user", "content": list(content), "source": {"kind": "user"}}


def system(id_: str = "s", *content: Json) -> Record:
    """Return the data of a `system/message`."""
    source = {"kind": "plugin", "plugin": "prompt"}
    message = {"id": id_, "role": "system", "content": list(content), "source": source}
    return {"turn": 1, "step": 1, "message": message}


def assistant(id_: str = "a", *content: Json, **more: Json) -> Record:
    """Return the data of an `assistant/message`."""
    source = {"kind": "model", "provider": "p", "model": "m"}
    message = {"id": id_, "role": "assistant", "content": list(content), "source": source}
    return {"turn": 1, "step": 1, "message": message, "stream": [], **more}


def tool_result(call_id: str = "c", *content: Json, **more: Json) -> Record:
    """Return the data of a `tool/result`."""
    block = {"type": "tool-result", "toolCallId": call_id, "content": list(content)}
    message = {
        "id": f"r-{call_id}",
        "role": "user",
        "content": [block],
        "source": {"kind": "tool", "callId": call_id},
    }
    return {"turn": 1, "step": 1, "message": message, **more}


def record(type_: str, seq: int, data: Json, **more: Json) -> Record:
    """Return an event record with the wire's field names."""
    return {"type": type_, "seq": seq, "time": 7, "data": data, **more}


def log(*events: tuple[str, Json] | tuple[str, Json, Mapping[str, Json]]) -> list[Record]:
    """Return numbered records; messages are placed at the end where nothing else is said."""
    records = []
    for seq, (type_, data, *rest) in enumerate(events):
        is_message = type_.endswith("/message") or type_ == "tool/result"
        more = rest[0] if rest else APPEND if is_message else {}
        records.append(record(type_, seq, data, **more))
    return records


def replace(first: int, last: int, *sources: int) -> dict[str, Json]:
    """Return the options of a replacement of the nodes `first` to `last`; it cites them or `sources`."""
    cited = list(sources) or sorted({first, last})
    marker = {"op": "replace", "startSeq": first, "endSeq": last}
    return {"surfaceOp": marker, "sourceEventSeqs": cited}


def omit(*targets: tuple[int, list[int]]) -> dict[str, Json]:
    """Return the data of an `image/offload`."""
    return {"targets": [{"seq": seq, "imageIndexes": indexes} for seq, indexes in targets]}


def nested(depth: int) -> Json:
    """Return lists in lists, `depth` of them."""
    value: Json = []
    for _ in range(depth - 1):
        value = [value]
    return value


def append_all(session: Session, records: Iterable[Record]) -> list[Recorded]:
    """Append records to a live session, one by one."""
    return [
        session.append(each["type"], each["data"], options_of(each) or None) for each in records
    ]


def options_of(each: Record) -> dict[str, Json]:
    """Return the append options that give a record's fields."""
    return {
        name: each[name] for name in ("surfaceOp", "sourceEventSeqs", "ignorable") if name in each
    }


def wishes_of(records: Iterable[Record]) -> list[AppendEvent]:
    """Return the wishes that append these records."""
    return [AppendEvent(e["type"], e["data"], options_of(e) or None) for e in records]


def view(session: Session) -> dict[str, Json]:
    """Return all that can be seen of a session's surface, as plain values."""
    return {
        "next_seq": session.next_seq,
        "version": session.version,
        "nodes": list(session.nodes),
        "messages": [(seq, thaw(message)) for seq, message in session.messages().items()],
        "replace_generation": session.replace_generation,
        "content_generation": session.content_generation,
        "inherited_count": session.inherited_count,
        "is_turn_open": session.is_turn_open,
    }


def wire(rows: Sequence[Recorded]) -> list[Record]:
    """Return the records of rows, header left out."""
    return [row.record() for row in rows if row.seq >= 0]
