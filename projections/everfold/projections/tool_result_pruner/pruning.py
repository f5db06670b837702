"""One pass over the tool results of a conversation: a shadow price, then the shortened copy (R294, R295)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from everfold.projections.token_meter.prices import message_price
from everfold.projections.tool_result_pruner.cutting import PruneLimits, pruned
from everfold.session.access import SessionAccess
from everfold.session.deciding import AppendEvent, replacement
from everfold.session.derive import derive_event_message
from everfold.session.events import EventLike
from everfold.session.frozen import Json
from everfold.session.session import Session

PRUNE = "compaction/prune"


@dataclass(frozen=True, slots=True)
class Cut:
    """A tool result that can be shortened.

    Attributes:
        seq: its node.
        data: the event data of the shortened copy.
        price: structural price of what the model sees of it now (R309).
        saved: tokens that shortening saves.
    """

    seq: int
    data: Json
    price: int
    saved: int


def cuts(session: Session, limits: PruneLimits, *, before: int | None = None) -> list[Cut]:
    """Return the tool results that are too long, in surface order, as the model sees them (R294).

    Args:
        before: look only at nodes that stand before this one; at all if None.
    """
    found = []
    for seq in session.nodes:
        if seq == before:
            break
        cut = cut_of(session, seq, limits)
        if cut is not None:
            found.append(cut)
    return found


def cut_of(session: Session, seq: int, limits: PruneLimits) -> Cut | None:
    """Return how one node can be shortened, None if it is no tool result or short enough."""
    event = session.event(seq)
    if event is None or event.type != "tool/result":
        return None
    shown = derive_event_message(event, session.state.surface.messages)
    block = _result_block(shown)
    if shown is None or block is None:
        return None
    content = pruned(block["content"], limits)
    if content is None:
        return None
    copy = {**shown, "content": [{**block, "content": content}]}
    price = message_price(shown)
    return Cut(seq, {**event.data, "message": copy}, price, price - message_price(copy))


def _result_block(message: Any) -> Any:
    content = message.get("content") if isinstance(message, dict) else None
    block = content[0] if isinstance(content, list) and len(content) == 1 else None
    is_result = isinstance(block, dict) and isinstance(block.get("content"), list)
    return block if is_result else None


def prune(access: SessionAccess, seqs: Sequence[int], limits: PruneLimits) -> int:
    """Shorten these tool results, one after another, and return how many were.

    Each is one batch of two events. One that others changed meanwhile is looked at again, and
    passed over if there is nothing to shorten any more.

    Raises:
        SessionError: one was refused; those before it stay shortened (R297).
    """
    access.view()
    return sum(bool(_prune_one(access, seq, limits)) for seq in seqs)


def _prune_one(access: SessionAccess, seq: int, limits: PruneLimits) -> Sequence[EventLike]:
    def plan(session: Session) -> list[AppendEvent]:
        cut = cut_of(session, seq, limits) if seq in session.nodes else None
        return [] if cut is None else list(_pair(cut))

    return access.append(plan)


def _pair(cut: Cut) -> tuple[AppendEvent, AppendEvent]:
    price = {
        "shadowedRange": {"start": cut.seq, "end": cut.seq},
        "shadowedSeqs": [cut.seq],
        "shadowedTokenCount": cut.price,
    }
    copy = replacement("tool/result", cut.data, start=cut.seq, end=cut.seq, sources=[cut.seq])
    return AppendEvent(PRUNE, price), copy
