"""Files that are refused: each with its line and code, and nothing left in the store."""

from collections.abc import Callable

import pytest

from everfold.interchange.errors import ImportRefusedError
from everfold.interchange.importing import ImportResult
from everfold.interchange.limits import ImportLimits
from everfold.session.errors import IdError
from everfold.session.ports import SessionStore
from tests.interchange.files import HEADER, Log, compressed, file_of, line
from tests.interchange.logs import compaction, fork, plain_turns

Take = Callable[..., ImportResult]


def refusal(
    take: Take, store: SessionStore, content: bytes, **options: object
) -> ImportRefusedError:
    """Import, and return how it was refused; what the store lists must not change."""
    before = list(store.streams())
    with pytest.raises(ImportRefusedError) as caught:
        take(content, **options)
    assert list(store.streams()) == before
    assert f"line {caught.value.line}" in str(caught.value)
    return caught.value


def with_header(**fields: object) -> bytes:
    return file_of([], {**HEADER, **fields})


def without(name: str) -> bytes:
    return file_of([], {key: value for key, value in HEADER.items() if key != name})


HEADERS = {
    "nothing": (b"", "session-header"),
    "a torn header": (line(HEADER)[:-1], "session-header"),
    "another type": (with_header(type="chat"), "session-header"),
    "a list": (b"[]\n", "session-header"),
    "prose": (b"Dear diary\n", "json"),
    "an empty line": (b"\n", "json"),
    "UTF-16": (line(HEADER).decode().encode("utf-16"), "json"),
    "an SQLite file": (b"SQLite format 3\0" + b"\0" * 80 + b"\n", "json"),
    "version 0 with a field of version 2": (with_header(version=0), "session-header"),
    "version -1": (with_header(version=-1), "session-header"),
    "version 4": (with_header(version=4), "format-version"),
    "version 4 of another shape": (
        b'{"type":"session","version":4,"other":[]}\n',
        "format-version",
    ),
    "a version in text": (with_header(version="3"), "session-header"),
    "no version": (without("version"), "session-header"),
    "no id": (without("id"), "id"),
    "no createdAt": (without("createdAt"), "session-header"),
    "no isSeeded": (without("isSeeded"), "session-header"),
    "a retired field": (with_header(seedLength=0), "session-header"),
    "a relative cwd": (with_header(cwd="quay"), "session-header"),
    "an unknown origin": (with_header(origin="robot"), "session-header"),
    "a negative depth": (with_header(delegationDepth=-1), "session-header"),
    "a cut without marker": (with_header(isSeeded=True), "seed-cut"),
    "a key twice": (b'{"type":"session","id":"a","id":"b"}\n', "json"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_bad_header_is_refused_in_line_1(name: str, store: SessionStore, take: Take) -> None:
    content, code = HEADERS[name]

    error = refusal(take, store, content)

    assert (error.line, error.code) == (1, code)


@pytest.mark.parametrize(
    "hostile",
    ["../../x", "..\\x", "a/b", ".", "..", "/etc/x", "\x00", "a\nb", "x" * 300, "é" * 101, ""],
)
def test_i1_an_id_that_is_a_path_is_refused(hostile: str, store: SessionStore, take: Take) -> None:
    error = refusal(take, store, with_header(id=hostile))

    assert (error.line, error.code) == (1, "id")


def test_a_bad_id_from_the_caller_is_refused(store: SessionStore, take: Take) -> None:
    with pytest.raises(IdError):
        take(plain_turns(), session_id="a/b")

    assert list(store.streams()) == []


def test_a_newer_version_is_named(store: SessionStore, take: Take) -> None:
    error = refusal(take, store, with_header(version=4))

    assert "format version 4 is newer than 3" in str(error)


def test_a_taken_id_is_refused(store: SessionStore, take: Take) -> None:
    take(plain_turns())

    error = refusal(take, store, plain_turns())

    assert (error.line, error.code) == (1, "session-exists")


def test_a_deleted_id_is_refused(store: SessionStore, take: Take) -> None:
    take(plain_turns())
    store.delete_stream("session-1")

    error = refusal(take, store, plain_turns())

    assert (error.line, error.code) == (1, "session-exists")


def test_a_bad_id_in_the_file_gives_way_to_a_given_one(store: SessionStore, take: Take) -> None:
    result = take(with_header(id="../../x"), session_id="mine")

    assert result.session_id == "mine"


def test_k1_an_unknown_required_type_is_named_with_its_seq(store: SessionStore, take: Take) -> None:
    error = refusal(take, store, added(type="acme/note"))

    assert "(seq 1): event type 'acme/note' is not known" in str(error)


def test_a_refusal_does_not_quote_megabytes(store: SessionStore, take: Take) -> None:
    error = refusal(take, store, with_header(cwd="x" * 2**20))

    assert len(str(error)) < 1100


def changed(number: int, old: bytes, new: bytes, content: bytes = b"") -> bytes:
    """Return a valid file in which one text of one line is another one."""
    lines = (content or plain_turns()).splitlines(keepends=True)
    assert old in lines[number - 1]
    lines[number - 1] = lines[number - 1].replace(old, new, 1)
    return b"".join(lines)


def added(**fields: object) -> bytes:
    """Return a file of one good event, and one record that is to be refused, as line 3."""
    log = Log()
    log.user()
    record = {"type": "todo/write", "seq": 1, "time": 1, "data": {}, **fields}
    return file_of([*log.records, record])


LINES = {
    "a line that is no JSON": (changed(5, b'"seq"', b'"seq'), 5, "json"),
    "an empty line": (plain_turns().replace(b"\n", b"\n\n", 1), 2, "json"),
    "a line of blanks": (plain_turns().replace(b"\n", b"\n  \n", 1), 2, "json"),
    "a record that is null": (line(HEADER) + b"null\n", 2, "envelope"),
    "a record that is a list": (line(HEADER) + b"[1]\n", 2, "envelope"),
    "two records in a line": (changed(3, b"}\n", b"}{}\n"), 3, "json"),
    "an unknown field": (added(extra=1), 3, "envelope"),
    "no time": (changed(4, b'"time"', b'"tide"'), 4, "envelope"),
    "ignorable false": (added(ignorable=False), 3, "envelope"),
    "a seq in text": (added(seq="1"), 3, "envelope"),
    "a hole": (changed(6, b'"seq":4', b'"seq":5'), 6, "sequence"),
    "a seq again": (changed(6, b'"seq":4', b'"seq":3'), 6, "sequence"),
    "an unknown required type": (added(type="acme/note"), 3, "unknown-event"),
    "a type that is a list": (added(type=[], sourceEventSeqs=[0]), 3, "envelope"),
    "a retired type": (added(type="mode/set"), 3, "unknown-event"),
    "a message without marker": (changed(5, b',"surfaceOp":"append"', b""), 5, "surface-op"),
    "a marker on a log-only event": (added(surfaceOp="append"), 3, "surface-op"),
    "sources on a log-only event": (added(sourceEventSeqs=[0]), 3, "surface-op"),
    "an old marker": (
        changed(16, b'"startSeq":3,"endSeq":9', b'"start":3,"end":9', compaction()),
        16,
        "surface-op",
    ),
    "a header with system": (changed(6, b'"config"', b'"system":"x","config"'), 6, "payload"),
    "an empty tool list": (changed(6, b'"config"', b'"tools":[],"config"'), 6, "payload"),
    "a message without id": (changed(5, b'"id":"u-3",', b""), 5, "message-shape"),
    "a stream that is missing": (changed(8, b'"stream"', b'"steam"'), 8, "settlement"),
    "an image that is not there": (
        added(type="image/offload", data={"targets": [{"seq": 0, "imageIndexes": [0]}]}),
        3,
        "offload-index",
    ),
    "an omission without targets": (added(type="image/offload"), 3, "offload-payload"),
    "an inherited marker under an unseeded header": (
        fork().replace(b'"isSeeded":true', b'"isSeeded":false'),
        8,
        "seed-cut",
    ),
    "a seeded header without marker": (
        fork().replace(b'{"inherited":true}', b"{}"),
        1,
        "seed-cut",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_a_bad_line_is_refused_by_number_and_code(
    name: str, store: SessionStore, take: Take
) -> None:
    content, number, code = LINES[name]

    error = refusal(take, store, content)

    assert (error.line, error.code) == (number, code)


@pytest.mark.parametrize("name", LINES)
def test_a_bad_line_is_refused_in_a_compressed_file_alike(
    name: str, store: SessionStore, take: Take
) -> None:
    content, number, code = LINES[name]

    error = refusal(take, store, compressed(content))

    assert (error.line, error.code) == (number, code)


SOURCES = {
    "text": ('["1"]', "source-refs"),
    "a pair that ends first": ("[[4,3],5,[10,11]]", "source-refs"),
    "a pair of three": ("[[3,4,5]]", "source-refs"),
    "an empty pair": ("[[]]", "source-refs"),
    "a pair of texts": ('[["3","4"]]', "source-refs"),
    "a nested pair": ("[[[3,4],5]]", "source-refs"),
    "ranges that overlap": ("[[3,6],[6,9]]", "source-refs"),
    "ranges that decrease": ("[[6,9],[3,5]]", "source-refs"),
    "a range to the event itself": ("[[3,14]]", "source-refs"),
    "a range over all memory": ("[[0,9007199254740991]]", "source-refs"),
    "none": ("[]", "source-refs"),
    "one twice": ("[3,3]", "source-refs"),
    "null": ("null", "source-refs"),
    "too few": ("[[3,5]]", "replace-coverage"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_bad_sources_are_refused(name: str, store: SessionStore, take: Take) -> None:
    coded, code = SOURCES[name]
    right = b"[[3,7],9,12,13]"
    content = changed(16, right, coded.encode(), compaction())

    error = refusal(take, store, content)

    assert (error.line, error.code) == (16, code)


def test_f2_events_out_of_order_are_named_by_line_and_seq(store: SessionStore, take: Take) -> None:
    lines = plain_turns().splitlines(keepends=True)
    lines[10:14] = [*lines[12:14], *lines[10:12]]

    error = refusal(take, store, b"".join(lines))

    assert (error.line, error.seq, error.code) == (11, 9, "sequence")
    assert "seq 11 where 9 is next" in str(error)


def test_f3_a_run_of_nul_bytes_is_named_by_line_and_seq(store: SessionStore, take: Take) -> None:
    lines = plain_turns(8).splitlines(keepends=True)
    lines[29] = b"\0" * 512 + b"\n"

    error = refusal(take, store, b"".join(lines))

    assert (error.line, error.seq, error.code) == (30, 28, "json")
    assert "512 NUL bytes" in str(error)


def test_damaged_compression_is_refused(store: SessionStore, take: Take) -> None:
    content = bytearray(compressed(plain_turns()))
    content[-6] ^= 0xFF

    error = refusal(take, store, bytes(content))

    assert error.code == "compression"


def test_bytes_after_the_last_frame_are_refused(store: SessionStore, take: Take) -> None:
    error = refusal(take, store, compressed(plain_turns()) + b"{}\n{}\n")

    assert error.code == "compression"


def test_a_line_over_the_cap_is_refused(store: SessionStore, take: Take) -> None:
    content = changed(4, b'"be brief"', b'"%b"' % (b"x" * 2000), plain_turns())

    error = refusal(take, store, content, limits=ImportLimits(max_line_bytes=1000))

    assert (error.line, error.code) == (4, "too-large")


def test_a_file_over_the_cap_is_refused(store: SessionStore, take: Take) -> None:
    error = refusal(take, store, plain_turns(), limits=ImportLimits(max_total_bytes=1000))

    assert error.code == "too-large"


def test_a_header_that_cannot_be_kept_is_refused_in_its_own_line(
    store: SessionStore, take: Take
) -> None:
    content = plain_turns().replace(b'"isSeeded"', b'"x":9007199254740993,"isSeeded"', 1)

    error = refusal(take, store, content)

    assert (error.line, error.code) == (1, "json")
