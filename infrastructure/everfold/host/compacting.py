"""Summarising a session from a program that has no event loop: the command line, for instance."""

import asyncio
from collections.abc import Mapping

from everfold.host.pausing import patience
from everfold.llm.retrying import RetryPolicy
from everfold.llm.route import Route, hang_up
from everfold.plugins.waterfalls import Waterfalls
from everfold.projections.compaction.engine import Compactor, Outcome
from everfold.projections.compaction.errors import CompactionError
from everfold.projections.compaction.job import CompactionWish
from everfold.projections.compaction.settings import CompactionSettings
from everfold.session.access import SessionAccess


def compact_now(
    access: SessionAccess,
    routes: Mapping[str, Route],
    wish: CompactionWish,
    *,
    settings: CompactionSettings | None = None,
    waterfalls: Waterfalls | None = None,
    retry: RetryPolicy | None = None,
) -> Outcome:
    """Replace the older part of a conversation by a summary, or say why there is none.

    Ctrl-C cancels it: the lock is freed in the log, then `KeyboardInterrupt` goes on.

    Args:
        routes: the models that may be asked, by provider.
        waterfalls: the chains that plugins joined; without them nothing recovers.
        retry: how requests are sent again that failed for reasons that may pass; as agents do if None.

    Raises:
        CompactionError: no summary was stored; its code says why (R288).
        SessionError: the session cannot be read.
    """

    def route_of(provider: str) -> Route:
        route = routes.get(provider)
        if route is None:
            known = ", ".join(sorted(routes)) or "none"
            raise CompactionError(f"there is no route to provider {provider!r}; routes: {known}")
        return route

    compactor = Compactor(
        route_of,
        CompactionSettings() if settings is None else settings,
        Waterfalls() if waterfalls is None else waterfalls,
        patience(RetryPolicy() if retry is None else retry),
    )

    async def compacted() -> Outcome:
        try:
            return await compactor.compact(access, wish)
        finally:
            await hang_up(routes.values())

    return asyncio.run(compacted())
