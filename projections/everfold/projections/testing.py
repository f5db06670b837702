"""The contract that every message projection must pass; import it to prove a projection of your own.

    from everfold.projections.testing import Example, MessageProjectionContract, Refusal

    class TestMyProjection(MessageProjectionContract):
        projection = MY_PROJECTION
        examples = [Example("one target", records=[…], data={…})]
        refusals = [Refusal("no target", records=[…], data={…}, code="my-target")]

It needs pytest. Call `pytest.register_assert_rewrite("everfold.projections.testing")` in your
conftest before the import to see the values of a failed assertion.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

import pytest

from everfold.session import doors
from everfold.session.composition import Composition
from everfold.session.deciding import AppendEvent, DecisionMeans
from everfold.session.derive import message_of
from everfold.session.detached import fold_surface
from everfold.session.errors import SessionError
from everfold.session.events import Event
from everfold.session.frozen import Json, freeze, json_equal, thaw
from everfold.session.lossless import encode
from everfold.session.projection import MessageProjection
from everfold.session.session import Session
from everfold.session.state import SessionState, StateFold
from everfold.session.surface import Surface, SurfaceFold

_HEADER = {"version": 3, "id": "contract", "createdAt": 0, "isSeeded": False}


@dataclass(frozen=True)
class Example:
    """A history and an event after it that the projection interprets.

    Attributes:
        name: what the example shows.
        records: event records with the wire's field names, from seq 0 on.
        data: payload of the projection event that follows them.
        changes: seqs whose messages it changes; None if you do not want to say.
    """

    name: str
    records: Sequence[Mapping[str, Json]]
    data: Json
    changes: frozenset[int] | None = None


@dataclass(frozen=True)
class Refusal:
    """A history and an event after it that the projection must refuse, with a stable code."""

    name: str
    records: Sequence[Mapping[str, Json]]
    data: Json
    code: str


class MessageProjectionContract:
    """What a projection owes to restore, fork and audit: it is a pure function that keeps identities.

    Attributes:
        projection: the definition to be proven.
        examples: at least one event that it interprets.
        refusals: at least one event that it refuses.
        others: further projections that the histories need.
    """

    projection: ClassVar[MessageProjection]
    examples: ClassVar[Sequence[Example]]
    refusals: ClassVar[Sequence[Refusal]]
    others: ClassVar[Sequence[MessageProjection]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each test its examples."""
        if "example" in metafunc.fixturenames:
            metafunc.parametrize(
                "example", self.examples, ids=[each.name for each in self.examples]
            )
        if "refusal" in metafunc.fixturenames:
            metafunc.parametrize(
                "refusal", self.refusals, ids=[each.name for each in self.refusals]
            )

    # What the tests work with.

    def composition(self) -> Composition:
        """Return a composition with the projection in force."""
        return Composition((self.projection, *self.others))

    def session(self, records: Sequence[Mapping[str, Json]]) -> Session:
        """Return a live session to which these records were appended."""
        session = Session.create(_HEADER, self.composition(), _means())
        session.append_batch([_command(record) for record in records])
        return session

    def answer(self, example: Example, fold: SurfaceFold) -> Mapping[int, Json]:
        """Return what the projection itself answers on a fold of the example's history."""
        return self.projection.project(self._event(example), fold)

    def _event(self, example: Example | Refusal) -> Event:
        return Event(self.projection.type, len(example.records), freeze(thaw(example.data)))

    def _fold(self, example: Example) -> SurfaceFold:
        return SurfaceFold(self.session(example.records).state.surface, self.composition())

    # The contract.

    def test_it_names_its_type_and_its_plugin(self) -> None:
        assert self.projection.type
        assert self.projection.plugin not in ("", "unnamed")
        assert self.projection.version >= 1

    def test_it_has_examples_and_refusals(self) -> None:
        assert self.examples
        assert self.refusals

    def test_the_same_history_gives_the_same_answer(self, example: Example) -> None:
        fold = self._fold(example)

        first, again = self.answer(example, fold), self.answer(example, fold)
        elsewhere = self.answer(example, self._fold(example))

        assert _same(first, again)
        assert _same(first, elsewhere)

    def test_its_arguments_stay_as_they_are(self, example: Example) -> None:
        session = self.session(example.records)
        fold = SurfaceFold(session.state.surface, self.composition())
        event = Event(self.projection.type, len(example.records), thaw(example.data))
        before = _seen(session.state.surface)

        self.projection.project(event, fold)

        assert json_equal(event.data, thaw(example.data))
        assert json_equal(_seen(session.state.surface), before)
        assert list(fold.nodes) == list(session.nodes)

    def test_it_changes_the_messages_that_the_example_says(self, example: Example) -> None:
        answer = self.answer(example, self._fold(example))

        if example.changes is not None:
            assert set(answer) == example.changes

    def test_answers_survive_a_json_round_trip(self, example: Example) -> None:
        for message in self.answer(example, self._fold(example)).values():
            _bytes, copy = encode(message)

            assert json_equal(copy, message)

    def test_id_role_and_source_are_kept(self, example: Example) -> None:
        session = self.session(example.records)
        answer = self.answer(example, SurfaceFold(session.state.surface, self.composition()))

        for seq, message in answer.items():
            stored = session.event(seq)
            assert stored is not None, f"seq {seq} is no message-producing event"
            before = message_of(stored)
            assert before is not None
            for name in ("id", "role", "source"):
                assert json_equal(message[name], before[name])

    def test_blocks_that_do_not_change_stay_the_same_objects(self, example: Example) -> None:
        session = self.session(example.records)
        before = dict(session.messages().items())
        answer = self.answer(example, SurfaceFold(session.state.surface, self.composition()))

        for seq, message in answer.items():
            if seq in before:
                assert _copied_blocks(before[seq]["content"], message["content"]) == []

    def test_other_messages_stay_the_same_objects(self, example: Example) -> None:
        session = self.session(example.records)
        before = dict(session.messages().items())
        changed = self.answer(example, SurfaceFold(session.state.surface, self.composition()))

        session.append(self.projection.type, example.data)

        after = dict(session.messages().items())
        others = before.keys() - changed.keys()
        assert all(after[seq] is before[seq] for seq in others)

    def test_stored_events_stay_as_they_are(self, example: Example) -> None:
        session = self.session(example.records)

        session.append(self.projection.type, example.data)

        stored = [row.record() for row in session.collect_events() if row.seq >= 0]
        for record, given in zip(stored, example.records, strict=False):
            assert json_equal({**record, "time": 0}, thaw({**given, "time": 0}))
        assert json_equal(stored[-1]["data"], thaw(example.data))

    def test_the_event_is_no_node_and_advances_the_content_once(self, example: Example) -> None:
        session = self.session(example.records)
        nodes, replaced = list(session.nodes), session.replace_generation
        changed = session.content_generation

        session.append(self.projection.type, example.data)

        assert list(session.nodes) == nodes
        assert session.replace_generation == replaced
        assert session.content_generation == changed + 1

    def test_replay_gives_what_the_live_session_shows(self, example: Example) -> None:
        live = self.session(example.records)
        live.append(self.projection.type, example.data)
        rows = list(live.collect_events())[1:]
        records = [row.record() for row in rows]
        wanted = _shown(live.state.surface)

        adopted = doors.restore(_HEADER, records, self.composition(), _means())
        detached = fold_surface([Event.of(record) for record in records], self.composition())
        replayed = StateFold(SessionState.empty(), self.composition())
        replayed.run(rows)

        assert json_equal(_shown(adopted.session.state.surface), wanted)
        assert json_equal(_shown(detached.surface), wanted)
        assert json_equal(_shown(replayed.state().surface), wanted)

    def test_a_refusal_has_a_code_and_names_the_event(self, refusal: Refusal) -> None:
        session = self.session(refusal.records)

        with pytest.raises(SessionError) as caught:
            session.append(self.projection.type, refusal.data)

        assert caught.value.code == refusal.code
        assert caught.value.code != SessionError.code
        assert caught.value.seq == len(refusal.records)
        assert str(caught.value)

    def test_malformed_data_are_refused_with_an_error_of_a_session(self, example: Example) -> None:
        fold = self._fold(example)

        for data in _malformed(thaw(example.data)):
            with suppress(SessionError):
                self.projection.project(
                    Event(self.projection.type, len(example.records), freeze(data)), fold
                )

    def test_a_refused_event_changes_nothing(self, refusal: Refusal) -> None:
        session = self.session(refusal.records)
        before, used = _seen(session.state.surface), dict(session.state.surface.used)

        with pytest.raises(SessionError):
            session.append(self.projection.type, refusal.data)

        assert json_equal(_seen(session.state.surface), before)
        assert dict(session.state.surface.used) == used
        assert session.next_seq == len(refusal.records)
        assert session.append("todo/write", {"todos": []}).seq == len(refusal.records)

    def test_a_refused_event_refuses_its_batch(self, refusal: Refusal) -> None:
        session = self.session(refusal.records)
        batch = [
            AppendEvent("todo/write", {"todos": []}),
            AppendEvent(self.projection.type, refusal.data),
        ]

        with pytest.raises(SessionError):
            session.append_batch(batch)

        assert session.next_seq == len(refusal.records)

    def test_a_log_with_a_refused_event_is_refused(self, refusal: Refusal) -> None:
        event = {"type": self.projection.type, "seq": len(refusal.records), "time": 0}
        records = [*refusal.records, {**event, "data": refusal.data}]

        with pytest.raises(SessionError) as caught:
            doors.restore(_HEADER, records, self.composition(), _means())

        assert caught.value.code == refusal.code


def _means() -> DecisionMeans:
    ids = count(1)
    return DecisionMeans(clock=lambda: 0, new_id=lambda: f"id-{next(ids)}")


def _command(record: Mapping[str, Json]) -> AppendEvent:
    names = ("surfaceOp", "sourceEventSeqs", "ignorable")
    options = {name: record[name] for name in names if name in record}
    return AppendEvent(record["type"], record["data"], options or None)


def _shown(surface: Surface) -> Json:
    """Return all that a surface shows, as plain JSON."""
    return {
        "nodes": list(surface.nodes),
        "messages": [[seq, thaw(message)] for seq, message in surface.messages.items()],
        "replaceGeneration": surface.replace_generation,
        "contentGeneration": surface.content_generation,
    }


def _seen(surface: Surface) -> Json:
    """Return all that a projection can read of a surface, as plain JSON."""
    events = [surface.events.find(seq) for seq in range(surface.next_seq)]
    stored = [[event.seq, event.type, thaw(event.data)] for event in events if event is not None]
    return {**_shown(surface), "events": stored}


def _same(left: Mapping[int, Json], right: Mapping[int, Json]) -> bool:
    return left.keys() == right.keys() and all(
        json_equal(message, right[seq]) for seq, message in left.items()
    )


def _copied_blocks(before: Sequence[Json], after: Sequence[Json]) -> list[Json]:
    """Return the blocks of `after` that equal one of `before` and are another object."""
    kept = {id(block) for block in _blocks(before)}
    old = list(_blocks(before))
    return [
        block
        for block in _blocks(after)
        if id(block) not in kept and any(json_equal(block, each) for each in old)
    ]


_ODD_VALUES: tuple[Json, ...] = (None, True, -1, 0, 0.5, 2**53, "", "text", [], [None], {}, {"": 0})


def _malformed(data: Json) -> Iterator[Json]:
    """Yield data with something else at each place in turn, and without each member in turn."""
    yield from _ODD_VALUES
    if isinstance(data, dict):
        for name, value in data.items():
            yield {other: data[other] for other in data if other != name}
            yield from ({**data, name: odd} for odd in _malformed(value))
    elif isinstance(data, list):
        for place, value in enumerate(data):
            yield from ([*data[:place], odd, *data[place + 1 :]] for odd in _malformed(value))


def _blocks(content: Sequence[Json]) -> Iterator[dict[str, Any]]:
    for block in content:
        if isinstance(block, dict):
            yield block
            if isinstance(block.get("content"), list):
                yield from _blocks(block["content"])
