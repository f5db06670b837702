"""Any session survives export and import, and any file that is taken comes back as it was."""

import io
import json
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.exporting import export_session
from everfold.interchange.importing import import_session
from everfold.llm.images import images
from everfold.projections.catalog import detached_composition
from everfold.session.deciding import AppendEvent, DecisionMeans, message, replacement
from everfold.session.detached import fold_surface, messages_of
from everfold.session.frozen import Json
from everfold.session.ports import SessionStore
from everfold.session.session import Session
from everfold.store.urls import open_store
from tests.interchange.files import HEADER, IMAGE, coded, file_of, normal

CONFORMANCE = Path(__file__).parent.parent / "conformance" / "fold.jsonl"
NUMBERS = st.one_of(
    st.integers(-(2**53 - 1), 2**53 - 1),
    st.floats(-(2.0**52), 2.0**52).filter(lambda number: number != 0),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=12)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)
Act = Callable[[Session], AppendEvent]


def user(blocks: list[Json]) -> dict[str, Json]:
    return {"id": "u", "role": "user", "content": blocks, "source": {"kind": "user"}}


BLOCKS = st.lists(st.one_of(st.just(IMAGE), VALUES), max_size=3)


@st.composite
def acts(draw: st.DrawFn) -> Act:
    """Draw something to do to a session; what it does not allow becomes a title."""
    kind = draw(st.sampled_from(["message", "replace", "omit", "log", "foreign"]))
    blocks, value, pick = draw(BLOCKS), draw(VALUES), draw(st.integers(0, 1000))

    def act(session: Session) -> AppendEvent:
        nodes = list(session.nodes)
        if kind == "message":
            return message("user/message", user(blocks))
        if kind == "replace" and nodes:
            first = pick % len(nodes)
            hidden = nodes[first : first + 1 + pick % 5]
            recent = range(max(0, session.next_seq - pick % 4), session.next_seq)
            sources = sorted({*hidden, *recent})
            data = user(blocks)
            return replacement(
                "user/message", data, start=hidden[0], end=hidden[-1], sources=sources
            )
        if kind == "omit" and (retained := omittable(session)):
            seq, index = retained[pick % len(retained)]
            return AppendEvent(
                "image/offload", {"targets": [{"seq": seq, "imageIndexes": [index]}]}
            )
        if kind == "foreign":
            return AppendEvent("acme/note", value, {"ignorable": True})
        return AppendEvent("session/title", value)

    return act


def omittable(session: Session) -> list[tuple[int, int]]:
    """Return seq and index of every image that is still shown."""
    return [
        (seq, index)
        for seq, shown in session.messages().items()
        for index, image in enumerate(images(shown))
        if not image.get("offloaded")
    ]


def means() -> DecisionMeans:
    ids, times = count(1), count(1_723_000_000_000)
    return DecisionMeans(clock=lambda: next(times), new_id=lambda: f"id-{next(ids)}")


def built(script: list[Act]) -> Session:
    header = {name: value for name, value in HEADER.items() if name != "type"}
    session = Session.create(header, detached_composition(), means())
    for act in script:
        command = act(session)
        session.append(command.type, command.data, command.options)
    return session


def exported(store: SessionStore, session_id: str = "session-1") -> bytes:
    out = io.BytesIO()
    export_session(store, session_id, out)
    return out.getvalue()


def view(store: SessionStore) -> tuple[Json, ...]:
    """Return all that the stored log of `session-1` shows."""
    rows = list(store.read("session-1", after=1))
    surface = fold_surface(rows, detached_composition()).surface
    generations = (surface.replace_generation, surface.content_generation)
    return [row.record() for row in rows], list(surface.nodes), messages_of(surface), generations


@given(st.lists(acts(), max_size=25))
def test_an_exported_session_folds_equal_when_it_is_imported(script: list[Act]) -> None:
    session = built(script)
    with open_store("sqlite://") as before, open_store("sqlite://") as after:
        before.append(session.collect_events())
        content = exported(before)

        import_session([content], after, detached_composition(), means())

        assert view(after) == view(before)
        assert exported(after) == content


def restored_logs() -> Iterator[tuple[str, dict[str, Json], list[Json]]]:
    """Yield the logs of the conformance cases: the project's, and those of EVERFOLD_CASES."""
    texts = CONFORMANCE.read_text().splitlines()
    folder = os.environ.get("EVERFOLD_CASES")
    texts += [path.read_text() for path in sorted(Path(folder).glob("*.json"))] if folder else []
    for case in map(json.loads, texts):
        events = case["input"].get("events")
        if isinstance(events, list) and case["input"].get("baseSeq", 0) == 0:
            header = {**HEADER, **case["input"].get("header", {})}
            # In memory a list in the sources is a fault; in a file it is a range.
            if not any(has_nested_sources(event) for event in events):
                yield case["name"], header, events


def has_nested_sources(event: Json) -> bool:
    sources = event.get("sourceEventSeqs") if isinstance(event, dict) else None
    return isinstance(sources, list) and any(isinstance(item, list) for item in sources)


def as_file(header: dict[str, Json], events: list[Json]) -> bytes:
    """Return a log as a file with times and coded sources."""
    records = []
    for event in events:
        record = {"time": 1, **event} if isinstance(event, dict) else event
        if isinstance(record, dict) and "sourceEventSeqs" in record:
            record["sourceEventSeqs"] = coded(record["sourceEventSeqs"])
        records.append(record)
    return file_of(records, header)


def test_every_conformance_log_that_is_taken_comes_back_with_the_same_bytes() -> None:
    taken = 0
    for name, header, events in restored_logs():
        with open_store("sqlite://") as store:
            content = as_file(header, events)
            try:
                result = import_session([content], store, detached_composition(), means())
            except ImportRefusedError:
                assert list(store.streams()) == []
                continue
            assert normal(exported(store, result.session_id)) == normal(content), name
            taken += 1

    assert taken > 40
