"""Read model `title`: the session's title, or else what the user said first."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from everfold.plugins.read_models import ReadModel
from everfold.session.events import EventLike
from everfold.session.frozen import Json

MAX_WORDS_LENGTH = 80
"""Characters of the user's first words that stand for a title."""


@dataclass(frozen=True, slots=True)
class TitleState:
    """The newest title, and the first words of a person; injected content is neither."""

    title: str | None = None
    seq: int | None = None
    words: str | None = None


def _fold(state: TitleState, event: EventLike) -> TitleState:
    data = event.data if isinstance(event.data, Mapping) else {}
    if event.type == "session/title":
        title = data.get("title")
        return replace(state, title=title, seq=event.seq) if isinstance(title, str) else state
    if state.words is not None:
        return state
    return replace(state, words=_first_words(data))


def _first_words(message: Mapping[str, Any]) -> str | None:
    source, content = message.get("source"), message.get("content")
    if not isinstance(source, Mapping) or source.get("kind") != "user":
        return None
    blocks = content if isinstance(content, list) else []
    texts = [b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text"]
    words = " ".join(" ".join(text.split()) for text in texts if isinstance(text, str)).strip()
    if len(words) <= MAX_WORDS_LENGTH:
        return words or None
    return words[: MAX_WORDS_LENGTH - 1].rstrip() + "…"


def _view(state: TitleState) -> Json:
    title = state.words if state.title is None else state.title
    return {"title": title, "isFallback": state.title is None, "seq": state.seq}


def _dump(state: TitleState) -> Json:
    return {"title": state.title, "seq": state.seq, "words": state.words}


def _load(state: Json) -> TitleState:
    return TitleState(state["title"], state["seq"], state["words"])


TITLE = ReadModel(
    name="title",
    version=1,
    types=frozenset(("session/title", "user/message")),
    start=TitleState,
    fold=_fold,
    dump=_dump,
    load=_load,
    view=_view,
)
