"""Runs one conformance case of each kind through the public API and gives its outcome."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any

from everfold.llm.budgets import ImageBudget, required_offload
from everfold.llm.images import images, is_omitted, retained_lengths
from everfold.projections.image_offload.projection import IMAGE_OFFLOAD, mark_message
from everfold.projections.image_offload.selection import oldest_images
from everfold.session.composition import Composition, Disposer
from everfold.session.deciding import AppendEvent, DecisionMeans
from everfold.session.detached import fold_surface, messages_of
from everfold.session.doors import Adopted, restore, seed
from everfold.session.errors import ProjectionRejectedError, SessionError
from everfold.session.events import Event, EventLike, Recorded
from everfold.session.frozen import Json, thaw
from everfold.session.projection import History, MessageProjection, message_at
from everfold.session.repair import closers
from everfold.session.request_header import canonical, fold_header, headers_equal, next_header
from everfold.session.session import Session
from everfold.session.surface import Surface

Outcome = dict[str, Any]
DEFAULT_HEADER = {"version": 3, "id": "case", "createdAt": 0, "isSeeded": False}


def retitle(event: EventLike, history: History) -> Mapping[int, Json]:
    """Interpret `note/retitle`, the corpus's small generic projection."""
    seq, text = event.data["seq"], event.data["text"]
    if text == "reject":
        raise ProjectionRejectedError("the event asks to be rejected", seq=event.seq)
    content = [{"type": "text", "text": text}] if text else []
    stored = history.event(seq)
    if stored is None:
        raise ProjectionRejectedError(f"seq {seq} holds no message", seq=event.seq)
    message = message_at(history, seq)
    if message is None:
        message = stored.data if stored.type == "user/message" else stored.data["message"]
    return {seq: {**message, "content": content}}


NOTE_RETITLE = MessageProjection("note/retitle", retitle, plugin="corpus")
DEFINITIONS = {"image/offload": IMAGE_OFFLOAD, "note/retitle": NOTE_RETITLE}


def composition_of(names: list[str] | None) -> Composition:
    """Return a composition of the named interpreters."""
    wanted = ["image/offload"] if names is None else names
    return Composition(DEFINITIONS[name] for name in wanted)


def means() -> DecisionMeans:
    """Return a clock and ids that count."""
    ids, times = count(1), count(1_723_000_000_000)
    return DecisionMeans(clock=lambda: next(times), new_id=lambda: f"id-{next(ids)}")


def refusal(error: SessionError) -> Outcome:
    """Return the outcome that stands for a refusal."""
    return {"errorKind": error.code, "error": str(error), "failedAt": error.seq}


def attempt(action: Callable[[], Outcome]) -> Outcome:
    """Return an action's outcome, or that of its refusal."""
    try:
        return action()
    except SessionError as error:
        return refusal(error)


def surface_outcome(surface: Surface) -> Outcome:
    """Return nodes, messages and generations of a surface."""
    return {
        "nodes": list(surface.nodes),
        "messages": [{"seq": seq, "message": thaw(m)} for seq, m in messages_of(surface)],
        "replaceGeneration": surface.replace_generation,
        "contentGeneration": surface.content_generation,
    }


def snapshot(session: Session) -> Outcome:
    """Return nodes, messages and generations as a live session reads them."""
    return {
        "nodes": list(session.nodes),
        "messages": [{"seq": s, "message": thaw(m)} for s, m in session.messages().items()],
        "replaceGeneration": session.replace_generation,
        "contentGeneration": session.content_generation,
    }


def fold_case(data: Json) -> Outcome:
    """Run a case of kind `fold`."""
    reader = data.get("reader", "pure")
    composition = composition_of(data.get("projections"))
    if reader in ("pure", "window"):
        events = [Event.of(record) for record in data["events"]]
        result = fold_surface(events, composition, base_seq=data.get("baseSeq", 0))
        hidden = [
            {"seq": r.seq, "start": r.start, "end": r.end, "shadowedSeqs": list(r.shadowed)}
            for r in result.replacements
        ]
        return {**surface_outcome(result.surface), "replacements": hidden}
    return adopted_outcome(adopt(reader, data, composition))


def adopt(reader: str, data: Json, composition: Composition) -> Adopted:
    """Take events in by the door that a reader's name stands for."""
    header = data.get("header", DEFAULT_HEADER)
    door = seed if reader == "seed" else restore
    inherited = data.get("inheritedEventCount")
    return door(header, data["events"], composition, means(), inherited_count=inherited)


def adopted_outcome(adopted: Adopted) -> Outcome:
    """Return what a door made of a log."""
    session = adopted.session
    return {
        **snapshot(session),
        "firstLiveSeq": session.first_live_seq,
        "inheritedEventCount": session.inherited_count,
        "appended": [added(event) for event in adopted.added],
    }


def added(event: Recorded) -> Outcome:
    """Return type, seq and data of an event."""
    return {"type": event.type, "seq": event.seq, "data": thaw(event.data)}


def append_case(data: Json) -> Outcome:
    """Run a case of kind `append`: a live session, one step after another."""
    composition = Composition()
    names = data.get("projections", ["image/offload"])
    disposers = {name: composition.register(DEFINITIONS[name]) for name in names}
    if "seed" in data:
        adopted = seed(DEFAULT_HEADER, data["seed"], composition, means())
        session, log = adopted.session, list(adopted.rows[1:])
    else:
        session, log = Session.create(DEFAULT_HEADER, composition, means()), []
        session.collect_events()
    live = _Live(session, composition, log, disposers)
    results = [attempt(partial(live.step, step)) for step in data["steps"]]
    log_records = [_without_time(event.record()) for event in live.log]
    final = attempt(lambda: snapshot(session))
    return {"results": results, "logLength": len(log), "log": log_records, "final": final}


class _Live:
    """A live session and its stored log."""

    def __init__(
        self,
        session: Session,
        composition: Composition,
        log: list[Recorded],
        disposers: dict[str, Disposer],
    ) -> None:
        self.session, self.composition, self.log = session, composition, log
        self.disposers = disposers

    def step(self, step: Json) -> Outcome:
        action = {"read": self.read, "register": self.register, "unregister": self.unregister}
        return action.get(step.get("op"), self.append)(step)

    def read(self, _step: Json) -> Outcome:
        return {"ok": True, **snapshot(self.session)}

    def register(self, step: Json) -> Outcome:
        definition = DEFINITIONS[step["type"]]
        if step.get("definition") == "copy":
            definition = MessageProjection(
                definition.type, definition.project, definition.plugin, definition.version
            )
        self.disposers[step["type"]] = self.composition.register(definition)
        return {"ok": True}

    def unregister(self, step: Json) -> Outcome:
        self.disposers[step["type"]]()
        return {"ok": True}

    def append(self, step: Json) -> Outcome:
        command = AppendEvent(step["type"], step["data"], step.get("intent"))
        decision = self.session.decide((command,))
        if step.get("veto"):
            return {"ok": False, "vetoed": True, "logLength": self.session.next_seq}
        self.session.accept(decision)
        self.log.extend(decision.events)
        return {"ok": True, "seq": decision.events[0].seq}


def _without_time(record: Outcome) -> Outcome:
    return {key: value for key, value in record.items() if key != "time"}


def select_case(data: Json) -> Outcome:
    """Run a case of kind `offload-select`."""
    if "message" in data:
        return {"message": mark_message(data["message"], data["indexes"])}
    adopted = restore(DEFAULT_HEADER, data["events"], composition_of(None), means())
    session = adopted.session
    wish = oldest_images(session, data["count"], selection=data.get("selection"))
    outcome: Outcome = {"recorded": wish is not None}
    if wish is not None:
        outcome["targets"] = thaw(session.append(wish.type, wish.data).data["targets"])
    return {**outcome, **snapshot(session), "marks": _marks(session)}


def _marks(session: Session) -> list[Outcome]:
    marks = []
    for seq, message in session.messages().items():
        flags = [is_omitted(image) for image in images(message["content"])]
        if flags:
            marks.append({"seq": seq, "offloaded": flags})
    return marks


def required_case(data: Json) -> Outcome:
    """Run a case of kind `required-offload`."""
    limits = data["budget"]
    budget = ImageBudget(
        representation=limits["representation"],
        max_bytes=limits.get("maxBytes"),
        max_images=limits.get("maxImages"),
        byte_quantum=limits.get("byteQuantum", 1),
        count_quantum=limits.get("countQuantum", 1),
    )
    return {"count": required_offload(_lengths(data), budget)}


def _lengths(data: Json) -> list[int]:
    if "lengths" in data:
        gone = set(data.get("offloaded", ()))
        return [length for index, length in enumerate(data["lengths"]) if index not in gone]
    versions = data.get("versionBytes", {})

    def length_of(image: Mapping[str, Json]) -> int:
        attachment = image["attachment"]
        return int(versions.get(attachment["attachmentId"], attachment["bytes"]))

    return retained_lengths((message["content"] for message in data["messages"]), length_of)


def header_case(data: Json) -> Outcome:
    """Run a case of kind `request-header`."""
    if data["fn"] == "fold":
        events = (Event.of(record) for record in data["events"])
        return {"header": fold_header(events, data.get("from"))}
    if data["fn"] == "canonical":
        return {"header": canonical(data["header"])}
    if data["fn"] == "equals":
        return {"equal": headers_equal(data["a"], data["b"])}
    record = next_header(
        data["header"],
        baseline=data["baseline"],
        is_logged=data["logged"],
        starts_series=data["startsSeries"],
    )
    return {"append": record}


def repair_case(data: Json) -> Outcome:
    """Run a case of kind `repair`."""
    return {"closers": closers(Event.of(record) for record in data["events"])}
