"""What a compaction is set to."""

from dataclasses import dataclass

from everfold.projections.compaction.errors import CompactionSummaryError

PROMPT = (
    "Everything above is to be replaced by a summary that you write now. Whoever goes on with the "
    "work sees your summary and the messages after it, and nothing else of the above. Write down: "
    "what the user wants, in their own words where these matter; what was done and decided, and "
    "why; facts found out, with exact names, paths, numbers and identifiers; what images showed; "
    "errors met, and what solved them; what is open, and the next step. Do not call tools, do "
    "not go on with the work, and do not address the user. Answer with the summary alone."
)


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """When a conversation is summarised, and how.

    Attributes:
        threshold: share of the context window from which on a conversation is under pressure.
        keep_tokens: how much of its end stays as it is, at most.
        min_span_tokens: a part that costs less is not worth a summary.
        max_summary_tokens: how long a summary may become.
        max_passes: how many requests one summary may take.
        regrowth: share of the window by which a conversation must have grown again before a
            second compaction for the same user message.
        prompt: what the model is asked to do.
        provider, model: who writes summaries; the conversation's own model if both are empty.
    """

    threshold: float = 0.85
    keep_tokens: int = 20_000
    min_span_tokens: int = 200
    max_summary_tokens: int = 8192
    max_passes: int = 16
    regrowth: float = 0.25
    prompt: str = PROMPT
    provider: str = ""
    model: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1 or not 0 < self.regrowth <= 1:
            raise ValueError("threshold and regrowth are shares above 0 and up to 1")
        if min(self.keep_tokens, self.min_span_tokens) < 0:
            raise ValueError("keep_tokens and min_span_tokens are not below 0")
        if min(self.max_summary_tokens, self.max_passes) < 1:
            raise ValueError("max_summary_tokens and max_passes are at least 1")
        if not self.prompt.strip() or bool(self.provider) != bool(self.model):
            raise ValueError("prompt is not empty; provider and model go together")

    def summary_tokens(self, window: int | None) -> int:
        """Return how long a summary may become with a context window of this many tokens."""
        if window is None:
            return self.max_summary_tokens
        return min(self.max_summary_tokens, max(window // 16, 64))

    def input_limit(self, window: int | None) -> int | None:
        """Return what one summary request may cost at most, None for any.

        Raises:
            CompactionSummaryError: the window is too small for any summary.
        """
        if window is None:
            return None
        # Prices are estimates: a twentieth of the window is left for their error.
        limit = window - self.summary_tokens(window) - window // 20
        if limit < 1:
            raise CompactionSummaryError(f"a context window of {window} tokens holds no summary")
        return limit
