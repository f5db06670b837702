"""The system prompt on the surface: node 0, later changes in history or at the head (R200)."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from everfold.agent.wishes import system_data
from everfold.session.deciding import AppendEvent, message, replacement
from everfold.session.derive import message_of
from everfold.session.ports import NewId
from everfold.session.session import Session

SYSTEM = "system/message"


@dataclass(slots=True)
class SystemPrompt:
    """Keeps the prompt on the surface equal to the one that is wanted; looks at each node once."""

    new_id: NewId
    _generation: int = -1
    _seen: int = 0
    _nodes: list[int] = field(default_factory=list)

    def wishes(
        self, session: Session, text: str, turn: int, step: int, *, in_history: bool
    ) -> list[AppendEvent]:
        """Return the events that make `text` the prompt, none if it is.

        Args:
            in_history: whether the route reads later system messages in their place.
        """
        nodes = self._system_nodes(session)
        if not nodes:
            is_needed = bool(text) or not session.nodes
            data = system_data(turn, step, self.new_id(), text)
            return [message(SYSTEM, data)] if is_needed else []
        texts = {node: _text(session, node) for node in nodes}
        said = [text_ for text_ in texts.values() if text_]
        if in_history and text:
            data = system_data(turn, step, self.new_id(), text)
            return [] if said and said[-1] == text else [message(SYSTEM, data)]
        return list(self._at_head(texts, text, turn, step))

    def _at_head(
        self, texts: dict[int, str], text: str, turn: int, step: int
    ) -> Iterator[AppendEvent]:
        """Yield the replacements that leave the prompt at the first system node alone."""
        for place, (node, said) in enumerate(texts.items()):
            wanted = text if place == 0 else ""
            if said != wanted:
                data = system_data(turn, step, self.new_id(), wanted)
                yield replacement(SYSTEM, data, start=node, end=node, sources=[node])

    def _system_nodes(self, session: Session) -> list[int]:
        nodes = session.nodes
        if session.content_generation != self._generation or self._seen > len(nodes):
            self._generation, self._seen, self._nodes = session.content_generation, 0, []
        for node in nodes.since(self._seen):
            event = session.event(node)
            if event is not None and event.type == SYSTEM:
                self._nodes.append(node)
        self._seen = len(nodes)
        return self._nodes


def _text(session: Session, node: int) -> str:
    event = session.event(node)
    content = (message_of(event) or {}).get("content", []) if event is not None else []
    texts = [block["text"] for block in content if isinstance(block.get("text"), str)]
    return "".join(texts)
