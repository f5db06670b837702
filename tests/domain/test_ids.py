"""Session ids."""

import pytest

from everfold.session.errors import IdError
from everfold.session.ids import MAX_ID_BYTES, session_id


@pytest.mark.parametrize(
    "text", ["a", "session-1", "née", "\U0001f600", "a b", "...", ".a", "a:b", "x" * MAX_ID_BYTES]
)
def test_a_name_is_an_id(text: str) -> None:
    assert session_id(text) == text


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "NoneType, not text"),
        (5, "int, not text"),
        (b"a", "bytes, not text"),
        ("", "is empty"),
        (".", "names a directory"),
        ("..", "names a directory"),
        ("a/b", "character 1 is a path separator"),
        ("\\", "character 0 is a path separator"),
        ("a\x00", "character 1 is a control character"),
        ("a\nb", "control character"),
        ("a\x7f", "control character"),
        ("a\x9b", "control character"),
        ("a\ud800", "character 1 is a lone surrogate"),
        ("x" * (MAX_ID_BYTES + 1), "is 201 bytes long, 200 is the most"),
        ("é" * 101, "is 202 bytes long"),
    ],
)
def test_other_values_are_refused_with_their_reason(value: object, reason: str) -> None:
    with pytest.raises(IdError, match=reason) as caught:
        session_id(value)

    assert caught.value.code == "id"
    assert caught.value.value == value
    assert str(caught.value).isprintable()
