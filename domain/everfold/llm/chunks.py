"""The pieces that a model's answer arrives in, whatever route it comes by (field reference, section 2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from everfold.llm.failure import LlmFailure

FinishKind = Literal["stop", "tool-calls", "max-tokens", "aborted", "error"]


@dataclass(frozen=True, slots=True)
class BlockStart:
    """A content block begins; `index` counts blocks from 0 in the order of the answer."""

    index: int
    block_type: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of a text block."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More text of a reasoning block."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of a tool call; `arguments` is a piece of JSON text as the model writes it."""

    index: int
    id: str
    arguments: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class BlockEnd:
    """A content block is complete; `block` is the whole of it."""

    index: int
    block: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the provider reports them; cached tokens are part of `input_tokens`."""

    input_tokens: int
    output_tokens: int
    total_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    def to_json(self) -> dict[str, int]:
        """Return the counts with the wire's field names."""
        fields = {
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "totalTokens": self.total_tokens,
            "cacheReadTokens": self.cache_read_tokens,
            "cacheWriteTokens": self.cache_write_tokens,
            "reasoningTokens": self.reasoning_tokens,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Finish:
    """The answer is over.

    Attributes:
        kind: why it ended.
        failure: with `aborted` and `error`.
        replay_state: what the provider wants back with the next request, opaque to us:
            `{"response": …, "blocks": …}`.
    """

    kind: FinishKind
    failure: LlmFailure | None = None
    replay_state: Mapping[str, Any] | None = None


Chunk = BlockStart | TextDelta | ReasoningDelta | ToolCallDelta | BlockEnd | Usage | Finish


def says_something(chunk: Chunk) -> bool:
    """Tell whether a chunk carries part of the answer, and is more than a sign of life.

    Text, reasoning and arguments do, blocks that came as a whole, token counts, and the finish.
    """
    match chunk:
        case TextDelta(_, text) | ReasoningDelta(_, text):
            return text != ""
        case ToolCallDelta(_, _, arguments):
            return arguments != ""
        case BlockEnd(_, block):
            return block.get("type") not in ("text", "reasoning") or bool(block.get("text"))
        case BlockStart():
            return False
        case _:
            return True
