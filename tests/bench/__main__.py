"""`python -m tests.bench [--quick] [--json FILE] [--only TEXT]`: prints the table, writes it as JSON."""

import argparse
import json
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from everfold.store.urls import open_store
from tests.bench.cases import Bench
from tests.bench.drawing import plot_simulation, simulation_table
from tests.bench.pairs import Row
from tests.bench.raw import RawPostgres, RawSqlite
from tests.bench.simulation import simulate
from tests.bench.sizes import idle_row, postgres_row, sqlite_row
from tests.bench.turns import turn_rows
from tests.bench.writers import writers_row
from tests.postgres import fresh_schema, own_server


def sqlite_rows(folder: Path, rounds: int) -> Iterator[Row]:
    """Measure on SQLite files with synchronous FULL."""
    raw = RawSqlite(folder / "raw.sqlite")
    with open_store(f"sqlite:///{folder / 'ours.sqlite'}") as store:
        yield from Bench("sqlite", store, raw, rounds=rounds).rows()
    raw.close()
    yield sqlite_row(folder / "sizes.sqlite")
    yield idle_row(folder / "idle.sqlite")


def postgres_rows(rounds: int) -> Iterator[Row]:
    """Measure on a server of its own that syncs its disk."""
    with own_server(settings="max_connections = 100\n") as server:
        with fresh_schema(server.get_uri()) as url, open_store(url) as store:
            raw = RawPostgres(url)
            yield from Bench("postgres", store, raw, rounds=rounds).rows()
            raw.close()
        with fresh_schema(server.get_uri()) as url:
            open_store(url).close()
            yield writers_row(url, rounds=max(2, rounds // 3), commits=150)
        with fresh_schema(server.get_uri()) as url:
            yield postgres_row(url, url.rpartition("schema=")[2])


def table(rows: list[Row]) -> Table:
    """Return the rows as a table for a terminal."""
    drawn = Table(title="everfold against the raw drivers")
    for name in ("work", "database", "ours", "base", "unit", "ratio", "limit", ""):
        drawn.add_column(name, justify="left" if name in ("work", "database") else "right")
    for row in rows:
        mark = "ok" if row.is_within else "OVER"
        figures = (f"{row.ours:.2f}", f"{row.base:.2f}", row.unit, f"{row.ratio:.2f}")
        drawn.add_row(row.work, row.database, *figures, row.limit, mark)
    return drawn


def draw_simulation(folder: Path, results: Path, console: Console) -> None:
    """Run the scenario of the design notes; print its table, and write its plot."""
    lines = simulate(f"sqlite:///{folder / 'simulation.sqlite'}?synchronous=off")
    console.print(simulation_table(lines))
    plot_simulation(lines, results / "simulation.png")
    console.print(f"plot written to {results / 'simulation.png'}")


def main(arguments: list[str]) -> None:
    """Measure, print, and write the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", type=Path, default=Path("bench-results/bench.json"))
    parser.add_argument(
        "--only", choices=("sqlite", "postgres", "turns", "simulation"), help="one part"
    )
    options = parser.parse_args(arguments)
    rounds = 5 if options.quick else 15
    options.json.parent.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    console = Console(width=None if sys.stdout.isatty() else 140)
    with tempfile.TemporaryDirectory(prefix="everfold-bench-") as folder:
        if options.only in (None, "sqlite"):
            rows.extend(sqlite_rows(Path(folder), rounds))
        if options.only in (None, "postgres"):
            rows.extend(postgres_rows(rounds))
        if options.only in (None, "turns"):
            rows.extend(turn_rows(Path(folder), turns=rounds))
        if options.only in (None, "simulation"):
            draw_simulation(Path(folder), options.json.parent, console)
    if not rows:
        return
    console.print(table(rows))
    machine = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    options.json.write_text(
        json.dumps({**machine, "rows": [asdict(row) for row in rows]}, indent=1)
    )
    console.print(f"figures written to {options.json}")


if __name__ == "__main__":
    main(sys.argv[1:])
