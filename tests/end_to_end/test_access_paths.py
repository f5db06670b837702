"""A model reads where its tools find what a request does not carry; the log alone gives the same text."""

import re
from pathlib import Path

import orjson

from everfold.agent.requests import rebuild_request
from everfold.attachments.filesystem import FileAttachments
from everfold.llm.route import Route
from everfold.projections.compaction.engine import Compacted
from everfold.projections.image_offload.decisions import omit
from everfold.session.frozen import Json
from tests.end_to_end.conftest import Opening
from tests.end_to_end.product import UNCHECKED, Product, run, shown_texts
from tests.providers.pictures import img
from tests.providers.strict_fake import StrictFake

FIRST, SECOND = "https://one.example/{digest}{extension}", "https://two.example/{id}/{name}"


def file_block(product: Product, data: bytes, name: str) -> Json:
    """Return a block of a stored file."""
    reference = {"attachmentId": product.host.attachments.put(data), "name": name}
    return {"type": "file", "attachment": {**reference, "bytes": len(data)}}


def rebuilt(product: Product, seq: int) -> bytes:
    """Return the bytes of the request that the log gives for a seq, by a route that knows nothing else."""

    async def prepare() -> bytes:
        # Past the comparison with the newest log: this is about an older one.
        route: Route = getattr(product.host.route(), "route")  # noqa: B009
        request = rebuild_request(product.reader, product.session_id, seq)
        try:
            return orjson.dumps((await route.prepare(request)).body)
        finally:
            await product.host.disconnect()

    return run(prepare())


def request_seqs(product: Product) -> list[int]:
    """Return for each answer the last seq that its request saw."""
    answers = [event for event in product.log() if event.type == "assistant/message"]
    correlations = [str(event.envelope()["correlationId"]) for event in answers]
    return [int(each.removeprefix("request:")) for each in correlations]


def test_files_and_omitted_images_are_said_to_be_where_the_profile_has_them(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened(UNCHECKED, access_path=FIRST)
    product.most_calls = 2
    picture, table = product.old_picture(img()), file_block(product, b"6,2.5", "tides.csv")
    product.say("look", picture, table)
    (message,) = product.data("user/message")
    seq = next(event.seq for event in product.log() if event.type == "user/message")
    omit(product.access, {seq: [0]})

    product.say("and now?")

    digests = [block["attachment"]["attachmentId"][7:] for block in message["content"][1:]]
    assert f'"https://one.example/{digests[0]}.png"' in shown_texts(product)
    assert f'"https://one.example/{digests[1]}"' in shown_texts(product)
    (context,) = product.data("request/context")
    assert context["accessPath"] == FIRST


def test_each_request_is_rebuilt_byte_for_byte_from_the_log_when_the_path_has_changed(
    opened: Opening, fake: StrictFake
) -> None:
    paths = (None, FIRST, SECOND, None)
    product = opened(UNCHECKED)
    product.most_calls = len(paths)
    table = file_block(product, b"6,2.5", "tides.csv")

    for path in paths:
        later = opened(UNCHECKED, session_id=product.session_id, access_path=path)
        later.say("look", table)

    sent = [call.raw for call in fake.calls]
    assert [b"one.example" in raw for raw in sent] == [False, True, False, False]
    assert [b"two.example" in raw for raw in sent] == [False, False, True, False]
    assert [rebuilt(product, seq) for seq in request_seqs(product)] == sent
    assert len(product.data("request/context")) == 4


def test_a_changed_path_is_shown_by_the_agent_that_runs_already(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened(UNCHECKED, access_path=FIRST)
    product.most_calls = 2
    table = file_block(product, b"6,2.5", "tides.csv")
    product.say("look", table)

    product.agent().use(access_path=SECOND)
    product.say("again")

    assert "two.example" in shown_texts(product)
    assert "one.example" not in shown_texts(product)


def test_a_summary_is_asked_for_with_the_same_paths_and_rebuilt_byte_for_byte(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened(
        UNCHECKED,
        access_path=FIRST,
        plugin={"compaction": {"keep_tokens": 20, "min_span_tokens": 20}},
    )
    product.most_calls = 2 + 1
    product.say("see " * 200, file_block(product, b"6,2.5", "tides.csv"))
    product.say("go on " * 40)

    outcome = product.compact()

    assert isinstance(outcome, Compacted)
    assert "https://one.example/" in shown_texts(product)
    (seq,) = (event.seq for event in product.log() if event.type == "compaction/request")
    assert rebuilt(product, seq) == fake.last.raw


def test_a_tool_on_this_machine_reads_the_files_of_the_store(
    opened: Opening, fake: StrictFake
) -> None:
    product = opened(UNCHECKED, access_path="local")
    product.most_calls = 1
    assert isinstance(product.host.attachments, FileAttachments)

    product.say("look", file_block(product, b"6,2.5", "tides.csv"))

    found = re.search(r'read-only, at "([^"]+)"', shown_texts(product))
    assert found is not None
    assert Path(found.group(1)).read_bytes() == b"6,2.5"
