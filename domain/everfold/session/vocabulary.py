"""The event types that are known, as declarations; the inventories are computed from them.

A declaration says what an event of the type does to the surface. The types that need an
interpreter (R100) are those declared as projections: nobody keeps that list by hand.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass


class Role(enum.Enum):
    """What an event does to the surface."""

    MESSAGE = "message"
    PROJECTION = "projection"
    LOG_ONLY = "log-only"


@dataclass(frozen=True, slots=True)
class EventType:
    """The declaration of an event type by the core or by a plugin."""

    name: str
    role: Role = Role.LOG_ONLY


class Vocabulary:
    """A set of declared event types."""

    def __init__(self, types: Iterable[EventType]) -> None:
        self._types = {declared.name: declared for declared in types}
        self.inventory = frozenset(
            name for name, declared in self._types.items() if declared.role is Role.PROJECTION
        )
        """Names of the types that need an interpreter."""

    def __contains__(self, name: object) -> bool:
        return name in self._types

    def __iter__(self) -> Iterator[EventType]:
        return iter(self._types.values())

    def __len__(self) -> int:
        return len(self._types)

    def extended(self, types: Iterable[EventType]) -> "Vocabulary":
        """Return this vocabulary and these types; a name that is known keeps its declaration."""
        more = {declared.name: declared for declared in types}
        return Vocabulary((more | self._types).values())

    def roles(self) -> Mapping[str, Role]:
        """Return the role of each known name."""
        return {name: declared.role for name, declared in self._types.items()}


MESSAGE_TYPES = frozenset(("system/message", "user/message", "assistant/message", "tool/result"))
"""The four types whose events become nodes (R40)."""

_LOG_ONLY = [
    "turn/start",
    "turn/end",
    "step/start",
    "step/end",
    "assistant/attempt",
    "tool/call",
    "request/header",
    "request/context",
    "session/end-seed",
    "compaction/start",
    "compaction/summary",
    "compaction/end",
    "compaction/prune",
    "agent/inbox/spliced",
    "agent-preset/selected",
    "approval/asked",
    "approval/decided",
    "approval/policy",
    "command/run",
    "command/done",
    "deliverables/presented",
    "feedback/message-put",
    "feedback/message-delete",
    "feedback/record",
    "fork/session-source",
    "goal/change",
    "hook/invoked",
    "hook/result",
    "llm/retry",
    "llm/retry-started",
    "model/selection",
    "permission/preset",
    "plan/mode",
    "sandbox/mode",
    "schedule/change",
    "session-log-deepseek/delivery-accepted",
    "session/title",
    "session/title-llm-request",
    "subagent/catalog",
    "subagent/descriptor",
    "subagent/model-selection-policy",
    "team/member",
    "team/message/queued",
    "team/message/delivered",
    "team/task",
    "todo/write",
    "tool-workflow/run-start",
    "tool-workflow/agent-start",
    "tool-workflow/agent-end",
    "tool-workflow/run-end",
    "tool/ptc-dispatch-start",
    "tool/ptc-dispatch",
    "web/deepseek-search-llm-request",
]

CORE = Vocabulary(
    (
        *(EventType(name, Role.MESSAGE) for name in sorted(MESSAGE_TYPES)),
        EventType("image/offload", Role.PROJECTION),
        *(EventType(name) for name in _LOG_ONLY),
    )
)
"""What every reader knows (field reference, section 3)."""
