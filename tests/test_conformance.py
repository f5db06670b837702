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
from tests.conformance_values import decoded, difference

HERE = Path(__file__).parent

EXCEPTIONS: dict[str, tuple[str, str]] = {}
"""Cases that everfold answers otherwise: name -> (V rule, errorKind that it answers with)."""

DRIVERS = {
    "fold": drivers.fold_case,
    "append": drivers.append_case,
    "offload-select": drivers.select_case,
    "required-offload": drivers.required_case,
    "request-header": drivers.header_case,
    "repair": drivers.repair_case,
    "fork": drivers.repair_case,
}


def _own_cases() -> Iterator[Json]:
    for path in sorted((HERE / "conformance").glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            yield json.loads(line)


def _folder_cases() -> Iterator[Json]:
    folders = [HERE.parent.parent / "shared" / "conformance" / "cases"]
    if "EVERFOLD_CASES" in os.environ:
        folders.append(Path(os.environ["EVERFOLD_CASES"]))
    for folder in folders:
        for path in sorted(folder.glob("*.json")):
            yield json.loads(path.read_text("utf-8"))


def _cases() -> dict[str, Json]:
    return {case["name"]: case for case in (*_own_cases(), *_folder_cases())}


CASES = _cases()


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_outcome_is_that_of_the_case(name: str) -> None:
    case = CASES[name]

    outcome = drivers.attempt(lambda: DRIVERS[case["kind"]](decoded(case["input"])))

    found = difference(case["expect"], outcome, name)
    if name not in EXCEPTIONS:
        assert found is None
