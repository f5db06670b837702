"""The documents say what is so: links, codes, commands, event types, examples, and named tests."""

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from pathlib import Path

import orjson
import pytest

import everfold
from everfold.cli.main import COMMANDS
from everfold.host.sessions import Sessions
from everfold.interchange.exporting import export_session
from everfold.llm.failure import FailureCode
from everfold.projections.catalog import detached_composition
from everfold.session.errors import SessionError
from everfold.session.events import Event, Origin, Recorded, placement_bytes, state_bytes, topic_of
from everfold.session.short_streams import stored_form
from everfold.store.urls import open_store

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted((ROOT / "README.md", *DOCS.rglob("*.md")))
ABSTRACT = {"SurfaceError", "ProjectionError"}
"""Classes that only gather others, and have no code of their own."""


def page(name: str) -> str:
    """Return the text of a document."""
    return (DOCS / name).read_text("utf-8")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8"))

    local = [link.partition("#")[0] for link in links if not re.match(r"[a-z]+:|#", link)]
    assert [link for link in local if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_document_that_is_named_is_there(path: Path) -> None:
    named = re.findall(r"\bdocs/[\w/.-]*\w\.md\b|\bdocs/\w+/", path.read_text("utf-8"))

    assert [name for name in named if not (ROOT / name).exists()] == []


def everything_below(base: type[object]) -> Iterator[type[object]]:
    """Yield the classes of this package below a class."""
    for below in base.__subclasses__():
        if below.__module__.startswith("everfold."):
            yield below
        yield from everything_below(below)


def coded_errors() -> set[tuple[str, str]]:
    """Return code and name of every error class that has a code of its own, in every module."""
    for module in pkgutil.walk_packages(everfold.__path__, "everfold."):
        import_module(module.name)
    return {
        (vars(each)["code"], each.__name__)
        for each in everything_below(Exception)
        if isinstance(vars(each).get("code"), str)
    }


def test_every_error_code_is_listed_and_every_listed_one_exists() -> None:
    listed = re.findall(r"^\| `([a-z-]+)` \| `(\w+)` \|", page("errors.md"), re.MULTILINE)

    assert len(listed) == len(set(listed))
    assert set(listed) == coded_errors()


def test_every_error_class_has_a_code_of_its_own_or_only_gathers_others() -> None:
    coded = {name for _code, name in coded_errors()}

    assert {each.__name__ for each in everything_below(SessionError)} - coded == ABSTRACT
    assert all(f"`{name}`" in page("errors.md") for name in ABSTRACT)


def test_no_two_classes_share_a_code() -> None:
    codes = [code for code, _name in coded_errors()]

    assert sorted(codes) == sorted(set(codes))


def test_every_failure_code_is_listed() -> None:
    listed = re.findall(r"^\| `([A-Z_]+)` \|", page("errors.md"), re.MULTILINE)

    assert listed == [str(code) for code in FailureCode]


def test_every_command_is_described() -> None:
    described = set(re.findall(r"^\| `([a-z-]+)", page("cli.md"), re.MULTILINE))

    assert set(COMMANDS) - described == set()


def test_every_event_type_is_described_once() -> None:
    rows = re.findall(r"^\| ((?:`[\w-]+(?:/[\w-]+)+`(?:, )?)+) \|", page("format.md"), re.MULTILINE)

    described = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    known = detached_composition().vocabulary
    assert sorted(described) == sorted(declared.name for declared in known)


def block(name: str) -> list[str]:
    """Return the lines of a fenced block of the format's document."""
    found = re.search(rf"^```{name}\n(.*?)^```", page("format.md"), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1].splitlines()


def example() -> list[Recorded]:
    """Return the rows that the format's document shows."""
    return [
        Recorded("quay", int(version), topic, state.encode())
        for version, topic, state in (line.split("  ", 2) for line in block("rows"))
    ]


@pytest.mark.parametrize("row", example(), ids=lambda row: row.topic)
def test_an_example_row_is_what_is_stored_today(row: Recorded) -> None:
    event = Event.of(row.record())
    envelope = row.envelope()

    state = state_bytes(
        stored_form(event.type, orjson.dumps(envelope["data"]), envelope["data"]),
        event_id=row.event_id,
        time_ms=event.time,
        placement=placement_bytes(event.type, event.surface_op, event.source_event_seqs),
        origin=Origin(envelope.get("actor"), envelope.get("correlationId")).fragment(),
    )

    assert state == row.state
    assert topic_of(event.type, ignorable=event.ignorable) == row.topic


def test_the_example_folds_to_what_the_document_says() -> None:
    with open_store("sqlite://") as store:
        store.append(example())
        sessions = Sessions(store, detached_composition())

        question, answer = sessions.load("quay", at=5).messages()
        now = [message["id"] for message in sessions.load("quay").messages()]

    assert [block.get("offloaded") for block in question["content"]] == [None, True]
    assert answer["id"] == "a-1"
    assert now == ["c-1"]


def test_the_example_is_exported_as_the_document_shows() -> None:
    out = BytesIO()
    with open_store("sqlite://") as store:
        store.append(example())
        export_session(store, "quay", out)

    assert out.getvalue().decode().splitlines() == block("file")


CASES = [
    f"{group}{number}"
    for group, count in zip(
        "ABCDEFGHIJKLM", (11, 11, 10, 13, 5, 4, 7, 5, 9, 2, 6, 5, 6), strict=True
    )
    for number in range(1, count + 1)
]


def test_every_field_report_has_one_line_in_the_map() -> None:
    listed = re.findall(r"^\| ([A-M]\d+) \|", page("field-reports.md"), re.MULTILINE)

    assert listed == CASES


def test_every_test_that_the_map_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/.]+\.py)::(\w+)`", page("field-reports.md"))

    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).is_file() or f"def {name}(" not in (ROOT / path).read_text("utf-8")
    ]
    assert len(named) > 100
    assert missing == []
