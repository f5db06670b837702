"""The standing checks fail where they should."""

import pytest

from everfold.host.sessions import Sessions
from everfold.session.frozen import Json
from everfold.session.ids import version_of
from tests.audit.damage import remove_row, rewrite_row
from tests.field_reports.kit import turn
from tests.field_reports.witness import Witness, check_texts, folds, rows_of
from tests.host.kit import hello, pictures


@pytest.fixture
def another_witness(sessions: Sessions, store_url: str, witness: Witness) -> Witness:
    """A witness of a session of one turn; the test's own one lets the session be harmed."""
    sessions.create("s")
    sessions.append_batch("s", turn(1))
    witness.damaged.add("s")
    another = Witness([store_url])
    another.look()
    return another


def test_s1_a_changed_row_is_found(store_url: str, another_witness: Witness) -> None:
    state = rows_of(store_url)["s", version_of(1)][1]
    rewrite_row(store_url, "s", version_of(1), state.replace(b"turn 1", b"turn 2"))

    with pytest.raises(AssertionError, match="S1: the row"):
        another_witness.check_rows()


def test_s1_a_removed_row_is_found(store_url: str, another_witness: Witness) -> None:
    remove_row(store_url, "s", version_of(3))

    with pytest.raises(AssertionError, match="S1: the row"):
        another_witness.check_rows()


def test_s1_a_deleted_session_is_no_change(sessions: Sessions, another_witness: Witness) -> None:
    sessions.delete("s")

    another_witness.check_rows()


def test_s2_folds_of_different_rows_differ(
    sessions: Sessions, store_url: str, another_witness: Witness
) -> None:
    before = folds(store_url, ["s"])
    state = rows_of(store_url)["s", version_of(1)][1]
    rewrite_row(store_url, "s", version_of(1), state.replace(b"turn 1", b"turn 2"))
    changed = folds(store_url, ["s"])
    rewrite_row(store_url, "s", version_of(1), b"{oh}")
    broken = folds(store_url, ["s"])

    assert len({repr(each) for each in (before, changed, broken)}) == 3
    assert broken == {"s": {"code": "store-corrupt", "seq": 1}}


def test_s5_a_lost_text_is_found(sessions: Sessions) -> None:
    sessions.create("s")
    sessions.append_batch("s", [hello(), pictures("p", 1)])
    log = list(sessions.log("s"))
    swapped: list[Json] = [log[1], log[0]]

    check_texts(sessions.load("s"), log)
    with pytest.raises(AssertionError, match="S5: message 0"):
        check_texts(sessions.load("s"), swapped)
