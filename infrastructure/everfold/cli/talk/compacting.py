"""Replacing the older part of a conversation by a summary, from the command line."""

import asyncio

from everfold.cli.describe import plural
from everfold.profiles.opening import OpenProfile
from everfold.projections.compaction.engine import NothingToDo, Outcome
from everfold.projections.compaction.job import CompactionWish
from everfold.session.frozen import Json


def compact(
    host: OpenProfile,
    runner: asyncio.Runner,
    session_id: str,
    *,
    focus: str = "",
    route: str | None = None,
    model: str | None = None,
) -> Outcome:
    """Have a session summarised by the profile's model; Ctrl-C cancels it and frees the lock.

    Raises:
        CompactionError: no summary was stored; its code says why.
        ProfileError, MissingKeyError: the model cannot be asked.
    """
    host.route(route)
    asked = host.profile.settings(route, model).model
    wish = CompactionWish(provider=asked.provider, model=asked.model, focus=focus)
    return runner.run(host.compactor().compact(host.access(session_id), wish))


def outcome_text(outcome: Outcome) -> str:
    """Return what people are told of it."""
    if isinstance(outcome, NothingToDo):
        return f"nothing was summarised: {outcome.reason}"
    return (
        f"{plural(len(outcome.hidden), 'message')} replaced by a summary (seq {outcome.seq}): "
        f"about {outcome.tokens_before} tokens became {outcome.tokens_after}"
    )


def outcome_record(session_id: str, outcome: Outcome) -> dict[str, Json]:
    """Return it as JSON."""
    if isinstance(outcome, NothingToDo):
        return {"session": session_id, "compacted": False, "reason": outcome.reason}
    usage = outcome.usage
    return {
        "session": session_id,
        "compacted": True,
        "compactionId": outcome.compaction_id,
        "seq": outcome.seq,
        "hidden": list(outcome.hidden),
        "tokensBefore": outcome.tokens_before,
        "tokensAfter": outcome.tokens_after,
        "passes": outcome.passes,
        "usage": None if usage is None else usage.to_json(),
    }
