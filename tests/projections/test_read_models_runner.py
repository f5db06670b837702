"""Read models of live sessions: after commits, from the global order, from checkpoints; without a say."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everfold.host.checkpoints import Checkpoints, FileCheckpoints, MemoryCheckpoints
from everfold.host.plugins import read_models_of
from everfold.host.read_models import ReadModelRunner
from everfold.host.sessions import Sessions
from everfold.plugins.plugin import Plugin, PluginError
from everfold.plugins.read_models import (
    Checkpoint,
    ReadModel,
    ReadModels,
    ReadModelStuckError,
)
from everfold.projections.catalog import detached_composition
from everfold.projections.read_models.plugin import plugin as shipped_plugin
from everfold.projections.read_models.shipped import SHIPPED, shipped_models
from everfold.session.deciding import AppendEvent, message
from everfold.session.errors import SessionNotFoundError
from everfold.session.events import EventLike
from everfold.session.ports import SessionStore
from everfold.store.urls import open_store
from tests.domain.kit import image, omit, text, user


def counting(version: int = 1, seen: list[int] | None = None) -> ReadModel[int]:
    """Return a model that counts user messages, and notes which events it saw."""
    noted: list[int] = [] if seen is None else seen

    def fold(state: int, event: EventLike) -> int:
        noted.append(event.seq)
        if "poison" in str(event.data):
            raise ValueError("poison")
        return state + 1

    return ReadModel("count", version, frozenset(("user/message",)), int, fold, int, int, int)


def words(number: int, *content: Any) -> AppendEvent:
    """Return the wish to append a message."""
    return message("user/message", user(f"u-{number}", *(content or (text("hi"),))))


def host(store: SessionStore) -> Sessions:
    """Return a host with nothing in memory."""
    return Sessions(store, detached_composition())


@pytest.fixture
def any_store(store_url: str) -> Iterator[SessionStore]:
    """An empty store of each kind."""
    with open_store(store_url) as opened:
        yield opened


def test_a_view_is_up_to_date_with_the_store(store: SessionStore) -> None:
    sessions = host(store)
    sessions.create("s")
    runner = ReadModelRunner(sessions, ReadModels((counting(),)))
    sessions.append_batch("s", [words(0)])
    first = runner.read("s", "count")

    host(store).append_batch("s", [words(1), words(2)])

    assert (first, runner.read("s", "count")) == (1, 3)


def test_after_commits_nothing_is_read_twice(store: SessionStore) -> None:
    seen: list[int] = []
    sessions = host(store)
    sessions.create("s")
    runner = ReadModelRunner(sessions, ReadModels((counting(seen=seen),)))
    dispose = runner.attach()

    sessions.append_batch("s", [words(0), words(1)])
    host(store).append_batch("s", [words(2)])
    sessions.append_batch("s", [words(3)])

    assert seen == [0, 1, 2, 3]
    assert runner.read("s", "count") == 4
    dispose()
    sessions.append_batch("s", [words(4)])
    assert seen == [0, 1, 2, 3]


def test_a_model_that_fails_cannot_refuse_an_event_and_stands_alone(
    store: SessionStore, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = host(store)
    sessions.create("s")
    runner = ReadModelRunner(sessions, ReadModels((counting(), *SHIPPED)))
    runner.attach()

    with caplog.at_level(logging.CRITICAL):
        sessions.append_batch("s", [words(0)])
        sessions.append_batch("s", [words(1, text("poison"))])
        sessions.append_batch("s", [words(2)])

    assert sessions.load("s").next_seq == 3
    assert runner.read("s", "context-breakdown")["messageCount"] == 3
    for _ in range(2):
        with pytest.raises(ReadModelStuckError, match="'count' cannot fold seq 1: poison"):
            runner.read("s", "count")


def test_an_unknown_session_is_none(store: SessionStore) -> None:
    with pytest.raises(SessionNotFoundError):
        ReadModelRunner(host(store), shipped_models()).read("nobody", "title")


@pytest.mark.parametrize("kind", ["memory", "files"])
def test_a_checkpoint_spares_what_was_read(store: SessionStore, tmp_path: Path, kind: str) -> None:
    kept: Checkpoints = MemoryCheckpoints() if kind == "memory" else FileCheckpoints(tmp_path / "c")
    sessions = host(store)
    sessions.create("s")
    sessions.append_batch("s", [words(n) for n in range(10)])
    first = ReadModelRunner(sessions, ReadModels((counting(),)), kept)
    first.read("s", "count")
    first.save()
    sessions.append_batch("s", [words(10)])

    seen: list[int] = []
    runner = ReadModelRunner(host(store), ReadModels((counting(seen=seen),)), kept)

    assert runner.read("s", "count") == 11
    assert seen == [10]


def test_r310_a_checkpoint_of_an_older_version_is_dropped_and_made_anew(
    store: SessionStore, tmp_path: Path
) -> None:
    kept = FileCheckpoints(tmp_path / "c")
    sessions = host(store)
    sessions.create("s")
    sessions.append_batch("s", [words(n) for n in range(3)])
    old = ReadModelRunner(sessions, ReadModels((counting(1),)), kept)
    old.read("s", "count")
    old.save()

    seen: list[int] = []
    new = ReadModelRunner(sessions, ReadModels((counting(2, seen),)), kept)
    value = new.read("s", "count")
    new.save()

    assert (value, seen) == (3, [0, 1, 2])
    loaded = kept.load("s", "count")
    assert loaded is not None
    assert loaded[0] == Checkpoint("count", 2, 3, 3)


def test_checkpoints_come_by_themselves(store: SessionStore) -> None:
    kept = MemoryCheckpoints()
    sessions = host(store)
    sessions.create("s")
    runner = ReadModelRunner(sessions, ReadModels((counting(),)), kept, checkpoint_every=5)
    runner.attach()

    for number in range(12):
        sessions.append_batch("s", [words(number)])

    loaded = kept.load("s", "count")
    assert loaded is not None
    assert loaded[0].next_seq == 10


def test_a_checkpoint_of_another_log_is_not_used(store: SessionStore, tmp_path: Path) -> None:
    """A database that was put back to an older backup has other events at the same places."""
    kept = MemoryCheckpoints()
    sessions = host(store)
    sessions.create("s")
    sessions.append_batch("s", [words(0)])
    kept.save("s", Checkpoint("count", 1, 1, 99), "an id of another log")
    kept.save("s", Checkpoint("other", 1, 50, 99), "an id of a longer log")

    assert ReadModelRunner(sessions, ReadModels((counting(),)), kept).read("s", "count") == 1


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b'{"sessionId":"s"}', None])
def test_a_damaged_file_is_no_loss(
    store: SessionStore, tmp_path: Path, damage: bytes | None
) -> None:
    folder = tmp_path / "c"
    sessions = host(store)
    sessions.create("s")
    sessions.append_batch("s", [words(n) for n in range(3)])
    runner = ReadModelRunner(sessions, shipped_models(), FileCheckpoints(folder))
    before = {model.name: runner.read("s", model.name) for model in SHIPPED}
    runner.save()
    for file in folder.iterdir():
        spoiled = file.read_bytes().replace(b'"state":', b'"stale":') if damage is None else damage
        file.write_bytes(spoiled)

    again = ReadModelRunner(sessions, shipped_models(), FileCheckpoints(folder))

    assert {model.name: again.read("s", model.name) for model in SHIPPED} == before


def test_files_are_for_their_owner_and_names_are_safe(store: SessionStore, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "c"
    kept = FileCheckpoints(folder)

    kept.save("../../x", Checkpoint("n", 1, 1, None), "e")

    (file,) = folder.iterdir()
    assert kept.load("../../x", "n") == (Checkpoint("n", 1, 1, None), "e")
    assert (file.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)


def test_rebuilding_drops_the_state_and_reads_all(store: SessionStore) -> None:
    seen: list[int] = []
    sessions = host(store)
    sessions.create("s")
    sessions.append_batch("s", [words(0), words(1)])
    runner = ReadModelRunner(sessions, ReadModels((counting(seen=seen),)))
    runner.read("s", "count")

    assert runner.rebuild("s", "count") == 2
    assert seen == [0, 1, 0, 1]


def test_a_model_that_comes_later_reads_the_log(store: SessionStore) -> None:
    models = ReadModels()
    sessions = host(store)
    sessions.create("s")
    runner = ReadModelRunner(sessions, models)
    runner.attach()
    sessions.append_batch("s", [words(0)])

    models.register(counting())
    sessions.append_batch("s", [words(1)])

    assert runner.read("s", "count") == 2


def test_few_sessions_stay_in_memory_and_the_others_in_checkpoints(store: SessionStore) -> None:
    seen: list[int] = []
    sessions = host(store)
    runner = ReadModelRunner(sessions, ReadModels((counting(seen=seen),)), live=2)
    runner.attach()
    for number in range(4):
        sessions.create(f"s-{number}")
        sessions.append_batch(f"s-{number}", [words(0)])

    assert [runner.read(f"s-{number}", "count") for number in range(4)] == [1] * 4
    assert seen == [0] * 4


def test_a_follower_sees_what_other_processes_store(any_store: SessionStore) -> None:
    seen: list[int] = []
    writer, reader = host(any_store), host(any_store)
    kept = MemoryCheckpoints()
    runner = ReadModelRunner(reader, ReadModels((counting(seen=seen), *SHIPPED)), kept)
    writer.create("s")
    writer.append_batch("s", [words(0, image(1)), words(1)])
    done = threading.Event()

    with reader.subscribe(after=runner.position) as notifications:

        def until_marked() -> Iterator[Any]:
            for notification in notifications:
                yield notification
                if notification.event.type == "todo/write":
                    return

        def follow() -> None:
            runner.follow(until_marked())
            done.set()

        thread = threading.Thread(target=follow)
        thread.start()
        writer.append_batch("s", [AppendEvent("image/offload", omit((0, [0])))])
        child = writer.fork("s", child_id="child")
        writer.append_batch(child, [words(2)])
        writer.append_batch("s", [AppendEvent("todo/write", {})])
        assert done.wait(60)
        thread.join()

    assert runner.read("s", "images")[0]["state"] == "omitted"
    assert runner.read("child", "count") == 3
    assert sorted(seen) == [0, 0, 1, 1, 4]
    runner.save()
    last = reader.store.read_all(after=0)[-1].position
    assert kept.load_position() == last


def test_a_follower_goes_on_where_it_was(store: SessionStore) -> None:
    seen: list[int] = []
    sessions = host(store)
    sessions.create("s")
    sessions.append_batch("s", [words(0)])
    kept = MemoryCheckpoints()
    first = ReadModelRunner(sessions, ReadModels((counting(),)), kept)
    first.follow(store.read_all(after=first.position))
    first.save()
    sessions.append_batch("s", [words(1)])

    runner = ReadModelRunner(host(store), ReadModels((counting(seen=seen),)), kept)
    rest = store.read_all(after=runner.position)
    runner.follow(rest)
    runner.follow(rest)

    assert len(rest) == 1
    assert seen == [1]


def test_a_session_that_was_deleted_meanwhile_does_not_stop_a_follower(
    store: SessionStore,
) -> None:
    sessions = host(store)
    for name in ("gone", "here"):
        sessions.create(name)
        sessions.append_batch(name, [words(0), words(1)])
    notifications = store.read_all(after=0)
    late = [each for each in notifications if each.event.seq != 0]
    sessions.delete("gone")
    runner = ReadModelRunner(host(store), ReadModels((counting(),)))

    runner.follow(late)

    assert runner.read("here", "count") == 2
    with pytest.raises(SessionNotFoundError):
        runner.read("gone", "count")


def test_plugins_bring_read_models_by_the_door_of_all_plugins(any_store: SessionStore) -> None:
    plugin = Plugin(name="acme-count", read_models=(counting(),))
    sessions = host(any_store)
    sessions.create("s")
    sessions.append_batch("s", [words(1), words(2)])

    runner = ReadModelRunner(sessions, read_models_of((shipped_plugin, plugin)))

    assert runner.read("s", "count") == 2
    assert len(read_models_of((shipped_plugin, plugin))) == len(SHIPPED) + 1


def test_a_plugin_whose_read_model_has_anothers_name_is_named() -> None:
    first = Plugin(name="first", read_models=(counting(),))
    second = Plugin(name="second", read_models=(counting(),))

    with pytest.raises(PluginError, match="plugin 'second' cannot be used"):
        read_models_of((first, second))
