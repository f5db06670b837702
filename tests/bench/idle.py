"""Prints the resident bytes that each of several loaded sessions adds to this process."""

import gc
import sys
from pathlib import Path

from everfold.host.sessions import Sessions
from everfold.projections.catalog import detached_composition
from everfold.store.urls import open_store


def resident_bytes() -> int:
    """Return this process's resident memory."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * 4096


def main(url: str, count: int) -> None:
    """Load the sessions, read each conversation once, and print the growth for each."""
    with open_store(url) as store:
        sessions = Sessions(store, detached_composition(), snapshot_every=0)
        read(sessions, "idle-0")
        gc.collect()
        before = resident_bytes()
        for number in range(1, count):
            read(sessions, f"idle-{number}")
        gc.collect()
        sys.stdout.write(f"{(resident_bytes() - before) / (count - 1)}\n")


def read(sessions: Sessions, name: str) -> None:
    """Load one session and look at every message."""
    for message in sessions.load(name).messages():
        assert message["id"]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
