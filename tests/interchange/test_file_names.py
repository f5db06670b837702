"""Names of exported files: safe, distinct, and readable backwards."""

import unicodedata
from pathlib import PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everfold.interchange.file_names import file_name, session_id_of
from everfold.session.errors import IdError

NAMES = {
    "session-1": "session-1.v3.jsonl",
    "a.b": "a.b.v3.jsonl",
    "a:b": "a%3ab.v3.jsonl",
    "a_b": "a_b.v3.jsonl",
    "Room": "%52oom.v3.jsonl",
    "room": "room.v3.jsonl",
    "\u00e9": "%c3%a9.v3.jsonl",
    "e\u0301": "e%cc%81.v3.jsonl",
    "%2e%2e%2f": "%252e%252e%252f.v3.jsonl",
    "CON": "%43%4f%4e.v3.jsonl",
    "con": "%63on.v3.jsonl",
    "com1.x": "%63om1.x.v3.jsonl",
    "console": "console.v3.jsonl",
    ".hidden": "%2ehidden.v3.jsonl",
    "-rf": "%2drf.v3.jsonl",
    "a b": "a%20b.v3.jsonl",
    "demo.v1": "demo.v1.v3.jsonl",
}
IDS = (
    st.text(min_size=1, max_size=60)
    .filter(lambda text: not any(unicodedata.category(each) == "Cc" for each in text))
    .filter(lambda text: not {"/", "\\"} & set(text) and text not in (".", ".."))
    .filter(lambda text: len(text.encode()) <= 200)
)


@pytest.mark.parametrize("session_id", NAMES)
def test_i1_i2_an_id_has_one_safe_name(session_id: str) -> None:
    name = file_name(session_id)

    assert name == NAMES[session_id]
    assert session_id_of(PurePath(name)) == session_id


@pytest.mark.parametrize("letter", ["x", "X", "я", "~"])
def test_i2_a_long_id_gets_a_name_that_file_systems_take(letter: str) -> None:
    session_id = letter * (200 // len(letter.encode()))
    other = session_id[:-1]

    name = file_name(session_id)

    assert len(name) < 220
    assert name != file_name(other)
    assert session_id_of(PurePath(name)) is None or letter == "x"


@pytest.mark.parametrize("session_id", ["../../x", "a/b", ".", "", "x" * 300, "a\x00"])
def test_i1_text_that_is_no_id_has_no_name(session_id: str) -> None:
    with pytest.raises(IdError):
        file_name(session_id)


@pytest.mark.parametrize(
    "name", ["session.jsonl", "A.v3.jsonl", "%41.v3.json", "%61.v3.jsonl", "%ff.v3.jsonl"]
)
def test_a_name_that_is_not_ours_stands_for_no_id(name: str) -> None:
    assert session_id_of(PurePath(name)) is None


@given(IDS, IDS)
def test_distinct_ids_have_names_that_no_file_system_folds(left: str, right: str) -> None:
    names = [file_name(left), file_name(right)]

    folded = {unicodedata.normalize("NFKC", name).casefold() for name in names}

    assert len(folded) == len({left, right})
    assert all(name.isascii() and len(name) <= 220 for name in names)


@given(IDS.filter(lambda text: len(text.encode()) <= 60))
def test_a_name_is_read_backwards(session_id: str) -> None:
    assert session_id_of(PurePath(file_name(session_id))) == session_id
