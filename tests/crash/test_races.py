"""Eight processes append at once, to one session and to many."""

from everfold.session.errors import ConflictError
from everfold.store.contract.rows import row, versions
from everfold.store.urls import open_store
from tests.processes import run_at_once

PROCESSES = 8
APPENDS_EACH = 30


def append_to_shared(url: str, stream_id: str, number: int) -> list[tuple[int, int]]:
    """Append batches of one to three events to a stream that others write, too.

    Returns:
        for each conflict the version it was decided on and the first one it brought.
    """
    conflicts: list[tuple[int, int]] = []
    with open_store(url) as store:
        version = store.version(stream_id)
        for count in range(APPENDS_EACH):
            texts = [f"{number}/{count}/{index}" for index in range(1 + count % 3)]
            while True:
                batch = [row(stream_id, version + 1 + i, text=t) for i, t in enumerate(texts)]
                try:
                    store.append(batch)
                except ConflictError as conflict:
                    brought = versions(conflict.appended)
                    conflicts.append((version, brought[0]))
                    version = brought[-1]
                    continue
                version += len(batch)
                break
    return conflicts


def append_to_own(url: str, stream_id: str) -> None:
    """Append to a stream that nobody else writes; the first event makes it."""
    with open_store(url) as store:
        for version in range(1, APPENDS_EACH + 1):
            store.append([row(stream_id, version, text=f"{stream_id}/{version}")])


def test_eight_processes_append_to_one_session_and_each_event_is_stored_once(
    store_url: str,
) -> None:
    with open_store(store_url) as store:
        store.append([row("shared", 1)])

    conflicts = run_at_once(append_to_shared, [(store_url, "shared", n) for n in range(PROCESSES)])

    with open_store(store_url) as store:
        stored = list(store.read("shared", after=1))
        followed = store.read_all()
    expected = {
        f"{n}/{c}/{i}"
        for n in range(PROCESSES)
        for c in range(APPENDS_EACH)
        for i in range(1 + c % 3)
    }
    assert versions(stored) == list(range(2, len(expected) + 2))
    assert sorted(e.data["text"] for e in stored) == sorted(expected)
    assert [n.event for n in followed[1:]] == stored
    assert all(brought == decided_on + 1 for each in conflicts for decided_on, brought in each)


def test_each_writer_of_one_session_keeps_the_order_of_its_own_events(store_url: str) -> None:
    with open_store(store_url) as store:
        store.append([row("shared", 1)])

    run_at_once(append_to_shared, [(store_url, "shared", n) for n in range(PROCESSES)])

    with open_store(store_url) as store:
        texts = [e.data["text"] for e in store.read("shared", after=1)]
    for number in range(PROCESSES):
        own = [tuple(map(int, t.split("/"))) for t in texts if t.startswith(f"{number}/")]
        assert own == sorted(own)


def test_eight_processes_append_to_sessions_of_their_own(store_url: str) -> None:
    streams = [f"own-{n}" for n in range(PROCESSES)]
    with open_store(store_url):
        pass

    run_at_once(append_to_own, [(store_url, stream_id) for stream_id in streams])

    with open_store(store_url) as store:
        assert [s.version for s in store.streams()] == [APPENDS_EACH] * PROCESSES
        for stream_id in streams:
            assert [e.data["text"] for e in store.read(stream_id)] == [
                f"{stream_id}/{version}" for version in range(1, APPENDS_EACH + 1)
            ]
