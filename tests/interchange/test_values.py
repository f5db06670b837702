"""Values in files that JSON or the log cannot keep: refused by field, or repaired if asked."""

import tracemalloc
from collections.abc import Callable
from itertools import repeat

import pytest
import zstandard

from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.importing import ImportResult
from everfold.interchange.limits import ImportLimits
from everfold.interchange.log_reader import Replaced
from everfold.session.frozen import Json
from everfold.session.ports import SessionStore
from tests.interchange.files import HEADER, line

Take = Callable[..., ImportResult]


def with_data(data: bytes) -> bytes:
    """Return a file of one log-only event with this payload, in line 2."""
    return line(HEADER) + b'{"type":"todo/write","seq":0,"time":1,"data":' + data + b"}\n"


def stored(store: SessionStore) -> Json:
    """Return the payload of the imported event."""
    (event,) = store.read("session-1", after=1)
    return event.data


def refusal(take: Take, content: bytes, **options: object) -> ImportRefusedError:
    with pytest.raises(ImportRefusedError) as caught:
        take(content, **options)
    return caught.value


NUMBERS = [
    "-0",
    "-0.0",
    "-0e5",
    "9007199254740992",
    "-9007199254740992",
    "9007199254740993",
    "9223372036854775808",
    "1e400",
    "-1e400",
    "1e300",
    "123456789012345678901234567890",
    "1e-400",
    "1" * 5000,
    "NaN",
    "-Infinity",
]


@pytest.mark.parametrize("text", NUMBERS)
def test_e3_a_number_that_would_change_is_refused_by_field(
    text: str, store: SessionStore, take: Take
) -> None:
    error = refusal(take, with_data(b'{"a":[0,{"b":%b}]}' % text.encode()))

    assert (error.line, error.code) == (2, "json")
    assert "data.a[1].b is " in str(error)
    assert list(store.streams()) == []


@pytest.mark.parametrize(
    "text", ["-1", "9007199254740991", "-9007199254740991", "1.0", "1e2", "0.0"]
)
def test_a_number_that_is_kept_is_taken(text: str, store: SessionStore, take: Take) -> None:
    take(with_data(text.encode()))

    assert stored(store) == float(text)


@pytest.mark.parametrize("field", ["seq", "time"])
def test_a_negative_zero_in_the_envelope_is_refused(field: str, take: Take) -> None:
    content = with_data(b"{}").replace(b'"%b":' % field.encode(), b'"%b":-' % field.encode())
    content = content.replace(b"-1,", b"-0,")

    error = refusal(take, content)

    assert (error.line, error.code) == (2, "json")
    assert f"{field} is -0" in str(error)


def test_a_key_that_is_there_twice_is_refused_by_name(take: Take) -> None:
    error = refusal(take, with_data(b'{"x":[{"a":1,"b":2,"a":1}]}'))

    assert (error.line, error.code) == (2, "json")
    assert "data.x[0] has the key 'a' twice" in str(error)


def test_a_key_that_is_there_twice_in_another_spelling_is_refused(take: Take) -> None:
    error = refusal(take, with_data(rb'{"a":1,"\u0061":2}'))

    assert "has the key 'a' twice" in str(error)


def nested(depth: int) -> bytes:
    """Return an array of this many levels."""
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize("wrap", [b"[%b]", b"[%b,0.10]"])
def test_nesting_of_200_levels_is_taken(wrap: bytes, store: SessionStore, take: Take) -> None:
    result = take(with_data(wrap % nested(199)))

    assert result.event_count == 1


@pytest.mark.parametrize("depth", [200, 500, 2_000, 100_000])
@pytest.mark.parametrize("wrap", [b"[%b]", b"[%b,0.10]"])
def test_i8_deeper_nesting_is_refused(depth: int, wrap: bytes, take: Take) -> None:
    error = refusal(take, with_data(wrap % nested(depth)))

    assert (error.line, error.code) == (2, "json")
    assert "nested deeper than 200 levels" in str(error)


def test_i8_nesting_that_never_ends_is_refused(take: Take) -> None:
    error = refusal(take, line(HEADER) + b'{"a":[' * 100_000 + b"\n")

    assert (error.line, error.code) == (2, "json")
    assert "nested deeper than 200 levels" in str(error)


def test_brackets_in_text_are_no_nesting(store: SessionStore, take: Take) -> None:
    take(with_data(b'"%b"' % (b'[{\\"' * 1000)))

    assert stored(store) == '[{"' * 1000


BAD_TEXTS = {
    "a byte": b'"a\xffb"',
    "a sequence that is cut": b'"a\xe2\x82b"',
    "an overlong form": b'"a\xc0\xafb"',
    "a surrogate in UTF-8": b'"a\xed\xa0\x80b"',
    "a lone high surrogate": rb'"a\ud83db"',
    "a lone low surrogate": rb'"a\udc00b"',
    "surrogates the wrong way round": rb'"a\ude00\ud83db"',
}
REPLACEMENTS = {
    "a byte": 1,
    "a sequence that is cut": 1,
    "an overlong form": 2,
    "a surrogate in UTF-8": 3,
    "a lone high surrogate": 1,
    "a lone low surrogate": 1,
    "surrogates the wrong way round": 2,
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_text_that_is_not_unicode_is_refused_by_line_and_field(
    name: str, store: SessionStore, take: Take
) -> None:
    error = refusal(take, with_data(b'{"a":[1,%b]}' % BAD_TEXTS[name]))

    assert (error.line, error.code) == (2, "json")
    assert "data.a[1] is not valid Unicode: character 1 is " in str(error)
    assert list(store.streams()) == []


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_text_that_is_not_unicode_is_repaired_when_that_is_asked_for(
    name: str, store: SessionStore, take: Take
) -> None:
    count = REPLACEMENTS[name]

    result = take(with_data(b'{"a":[1,%b]}' % BAD_TEXTS[name]), repair=True)

    assert result.replaced == (Replaced(2, "data.a[1]", count),)
    assert stored(store) == {"a": [1, f"a{chr(0xFFFD) * count}b"]}


def test_a_repair_of_valid_text_changes_nothing(store: SessionStore, take: Take) -> None:
    result = take(with_data('"\ufffd 🚣 \\ud83d\\udea3"'.encode()), repair=True)

    assert result.replaced == ()
    assert stored(store) == "\ufffd 🚣 🚣"


def test_a_key_is_repaired_too(store: SessionStore, take: Take) -> None:
    result = take(with_data(b'{"k\xff":{"\\ud800":1}}'), repair=True)

    assert stored(store) == {"k\ufffd": {"\ufffd": 1}}
    assert [(each.line, each.path, each.count) for each in result.replaced] == [
        (2, "a key of data", 1),
        (2, "a key of data.k\ufffd", 1),
    ]


def test_keys_that_a_repair_makes_equal_are_refused(take: Take) -> None:
    error = refusal(take, with_data(rb'{"\ud800":1,"\ud801":2}'), repair=True)

    assert "twice after the repair" in str(error)


def test_a_repair_of_the_header_is_listed(store: SessionStore, take: Take) -> None:
    header = line(HEADER).replace(b"/srv/quay", b"/srv/qu\xe4y")

    result = take(header, repair=True)

    assert result.replaced == (Replaced(1, "cwd", 1),)


def test_a_repair_lets_nothing_else_pass(store: SessionStore, take: Take) -> None:
    error = refusal(take, with_data(b'["\xff",-0]'), repair=True)

    assert (error.line, error.code) == (2, "json")
    assert list(store.streams()) == []


def test_bytes_outside_of_text_are_not_repaired(take: Take) -> None:
    error = refusal(take, with_data(b"[\xff]"), repair=True)

    assert "is not JSON" in str(error)


@pytest.mark.parametrize(
    "text", ["W\x00s\x00", "\\u0000", "\\\\u0000", "\x7f", "\u2028", "e\u0301"]
)
def test_e1_e2_valid_text_is_kept_as_it_is(text: str, store: SessionStore, take: Take) -> None:
    content = line(HEADER) + line({"type": "todo/write", "seq": 0, "time": 1, "data": {text: text}})

    take(content)

    assert stored(store) == {text: text}


def bomb(piece: bytes, count: int) -> bytes:
    """Return a header frame and a frame that repeats a piece."""
    compressor = zstandard.ZstdCompressor().compressobj()
    parts = [compressor.compress(part) for part in repeat(piece, count)]
    return zstandard.compress(line(HEADER)) + b"".join(parts) + compressor.flush()


@pytest.mark.parametrize("piece", [b"\0" * 2**20, b"\n" * 2**20, b'{"a":' * 2**18, b" " * 2**20])
def test_i8_a_small_file_that_expands_is_refused_before_it_takes_memory(
    piece: bytes, store: SessionStore, take: Take
) -> None:
    content = bomb(piece, 600)
    limits = ImportLimits(max_line_bytes=2**20)
    tracemalloc.start()

    error = refusal(take, content, limits=limits)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(content) < 200_000
    assert error.line == 2
    assert error.code in ("too-large", "json")
    assert peak < 64 * 2**20


def test_i8_the_total_is_capped_over_frames(take: Take) -> None:
    limits = ImportLimits(max_total_bytes=2**20)

    error = refusal(take, bomb(b"x" * 2**16, 17), limits=limits)

    assert (error.line, error.code) == (2, "too-large")
