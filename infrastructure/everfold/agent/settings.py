"""What an agent is set to do: model, prompt, retries and limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from everfold.llm.retrying import RetryPolicy
from everfold.session.frozen import Json


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which model is asked, and how; None leaves a field out of the request.

    Attributes:
        provider: name of one of the agent's routes.
        adapter_defaults: which of `reasoningEffort` and `maxTokens` were filled in by default
            and not chosen by a person.
    """

    provider: str
    model: str
    reasoning_effort: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    adapter_defaults: tuple[str, ...] = ()

    def header(self, tools: list[dict[str, Json]]) -> dict[str, Json]:
        """Return the request header that these settings and tools make (R187)."""
        fields: Mapping[str, Json] = {
            "provider": self.provider,
            "model": self.model,
            "reasoningEffort": self.reasoning_effort,
            "temperature": self.temperature,
            "maxTokens": self.max_tokens,
            "stop": None if self.stop is None else list(self.stop),
        }
        header: dict[str, Json] = {
            "config": {name: value for name, value in fields.items() if value is not None}
        }
        if self.adapter_defaults:
            header["adapterDefaults"] = dict.fromkeys(self.adapter_defaults, True)
        return {**header, "tools": tools} if tools else header


@dataclass(frozen=True, slots=True)
class Limits:
    """What keeps a turn from running for ever.

    Attributes:
        steps: requests that a turn may settle; then it ends with an error.
        recoveries: how often one step may be recovered by shortening the history.
        parallel_tools: tools that run at once.
        tool_timeout_s: for tools that do not say their own.
        gather_s: when one of several tools has answered, how long the others may take to have
            their answers stored with it, in the order of the calls.
        first_chunk_timeout_s: patience until an answer says something.
        chunk_timeout_s: patience between two pieces of an answer that say something; blocks that
            only begin and empty texts do not. Both are for routes with less patience of their own.
        answer_chars: an answer is cut off here, and what came is kept.
        result_chars: text of a tool's result is shortened to this.
        grace_s: how long cancelled work may take to stop before it is left behind.
    """

    steps: int = 200
    recoveries: int = 50
    parallel_tools: int = 8
    tool_timeout_s: float = 600.0
    gather_s: float = 0.05
    first_chunk_timeout_s: float = 1200.0
    chunk_timeout_s: float = 1200.0
    answer_chars: int = 1_500_000
    result_chars: int = 1_000_000
    grace_s: float = 5.0


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """All that a loop is set to.

    Attributes:
        system_prompt: the first node of the surface, even when empty (R200).
        access_path: the template of where tools can read attachments (`everfold.llm.access_paths`);
            None for nowhere. Omitted images and files are said to be there.
    """

    model: ModelSettings
    system_prompt: str = ""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    limits: Limits = field(default_factory=Limits)
    access_path: str | None = None
