"""Every conformance case, from the project's own copy and from folders of further cases.

`EVERFOLD_CASES` names a folder of case files; `../shared/conformance/cases` is read where it exists.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from everfold.session.frozen import Json
from tests import conformance_drivers as drivers
from tests.conformance_forks import fork_case
from tests.conformance_values import decoded, difference

HERE = Path(__file__).parent

ACCEPTED = "accepted"

EXCEPTIONS: dict[str, tuple[str, str]] = {
    "append-header-rules": ("V1", "payload"),
    "generic-register-second-type": ("V4", "unknown-event"),
    "generic-unknown-to-vocabulary-reader": ("V4", ACCEPTED),
    "random-append-404": ("V4", "unknown-event"),
    "random-fold-003": ("V4", "unknown-event"),
    "random-fold-009": ("V4", "unknown-event"),
    "random-select-202": ("V4", "unknown-event"),
    "random-select-210": ("V4", "unknown-event"),
}
"""Cases that everfold answers otherwise: name -> (V rule, errorKind of its answer).

V1: a live append checks the reason of a request header. V4: a required event of an unknown type
is refused at every door, and a type whose interpreter is in the composition is a known one.
"""

DRIVERS = {
    "fold": drivers.fold_case,
    "append": drivers.append_case,
    "offload-select": drivers.select_case,
    "required-offload": drivers.required_case,
    "request-header": drivers.header_case,
    "repair": drivers.repair_case,
    "fork": fork_case,
}


def _own_cases() -> Iterator[Json]:
    for path in sorted((HERE / "conformance").glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            yield json.loads(line)


def _folder_cases(folder: Path) -> Iterator[Json]:
    for path in sorted(folder.glob("*.json")):
        yield json.loads(path.read_text("utf-8"))


def _folders() -> Iterator[Path]:
    yield HERE.parent.parent / "shared" / "conformance" / "cases"
    named = os.environ.get("EVERFOLD_CASES")
    if named:
        if not any(Path(named).glob("*.json")):
            raise pytest.UsageError(f"EVERFOLD_CASES names {named}, which holds no *.json file")
        yield Path(named)


def _cases() -> dict[str, Json]:
    """Return all cases by name; where two of one name differ, both are run."""
    found = {case["name"]: case for case in _own_cases()}
    for folder in _folders():
        for case in _folder_cases(folder):
            if found.setdefault(case["name"], case) != case:
                found[f"{folder}/{case['name']}"] = case
    return found


CASES = _cases()


def outcome_of(case: Json) -> Json:
    return drivers.attempt(lambda: DRIVERS[case["kind"]](decoded(case["input"])))


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_outcome_is_that_of_the_case(name: str) -> None:
    case = CASES[name]

    outcome = outcome_of(case)

    found = difference(case["expect"], outcome, name)
    if case["name"] in EXCEPTIONS:
        _rule, kind = EXCEPTIONS[case["name"]]
        assert found is not None
        assert (f"refused ({kind}:" in found) if kind != ACCEPTED else ("errorKind" not in outcome)
    else:
        assert found is None


REFUSED = {
    case["name"]: case
    for case in _own_cases()
    if "failedAt" in case["expect"] and case["name"] not in EXCEPTIONS
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refused_log_is_refused_at_the_event_that_the_case_names(name: str) -> None:
    case = REFUSED[name]

    assert outcome_of(case)["failedAt"] == case["expect"]["failedAt"]


def test_every_exception_names_a_case() -> None:
    assert EXCEPTIONS.keys() <= CASES.keys()
