"""Answers with their streams, as the loop stores them."""

from everfold.llm.assembly import Assembler
from everfold.llm.chunks import BlockEnd, BlockStart, Chunk, Finish, TextDelta, Usage
from tests.domain.kit import Record, assistant


def answered(arrivals: list[tuple[Chunk, int]]) -> Record:
    """Return the payload that the loop stores for chunks and the times that they came at."""
    assembler = Assembler()
    for chunk, time in arrivals:
        assembler.add(chunk, time)
    answer = assembler.answer()
    usage = {} if answer.usage is None else {"usage": answer.usage.to_json()}
    payload = assistant("a", *answer.content, **usage)
    return {**payload, "stream": assembler.records}


def spoken(*texts: str) -> Record:
    """Return the payload of an answer that came in these pieces, one every 20 ms."""
    words: list[Chunk] = [TextDelta(0, text) for text in texts]
    block = BlockEnd(0, {"type": "text", "text": "".join(texts)})
    whole = [BlockStart(0, "text"), *words, block, Usage(12, 3), Finish("stop")]
    return answered([(chunk, 1_790_000_000_000 + 20 * at) for at, chunk in enumerate(whole)])
