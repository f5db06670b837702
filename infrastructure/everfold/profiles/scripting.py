"""A scripted model as a profile describes it: what it answers, how fast, and what it takes."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from everfold.llm.chunks import FinishKind, TextDelta
from everfold.llm.route import Capabilities
from everfold.profiles.checking import Strict, Table, validated
from everfold.routes.limits import BudgetLimits
from everfold.routes.scripted import Reply, ScriptedRoute, Step, calls, echo, fails, says
from everfold.routes.settings import Seconds


class CallTable(Strict):
    """A tool call of the scripted model."""

    id: str
    name: str
    arguments: Mapping[str, Any] = {}


class ReplyTable(Strict):
    """One answer.

    Attributes:
        text: what it says; before its `calls` if it has any.
        pieces: in how many pieces the text is streamed.
        pause_s: time before each piece.
        fails: the code of the failure with which the answer ends; the text comes before it.
        message, offload_images, retry_after_ms: facts of that failure.
        hangs: whether the answer stays open for ever after its text.
    """

    text: str = ""
    calls: tuple[CallTable, ...] = ()
    pieces: int = Field(default=2, ge=1)
    pause_s: Seconds | None = None
    finish: FinishKind = "stop"
    fails: str | None = None
    message: str = "scripted failure"
    offload_images: int | None = None
    retry_after_ms: int | None = None
    hangs: bool = False

    def reply(self, pause_s: float) -> Step:
        """Return the step of a script."""
        if not self.model_fields_set:
            return echo
        pause = pause_s if self.pause_s is None else self.pause_s
        made = self._reply()
        return Reply(made.chunks, made.failure, made.hangs, pause)

    def _reply(self) -> Reply:
        size = max(-(-len(self.text) // self.pieces), 1)
        starts = range(0, len(self.text), size)
        deltas = tuple(TextDelta(0, self.text[start : start + size]) for start in starts)
        if self.fails is not None:
            return fails(
                self.fails,
                self.message,
                after=deltas,
                offload_images=self.offload_images,
                retry_after_ms=self.retry_after_ms,
            )
        if self.hangs:
            return Reply(deltas, hangs=True)
        if self.calls:
            wanted = [(each.id, each.name, each.arguments) for each in self.calls]
            return calls(*wanted, text=self.text)
        return says(self.text, finish=self.finish, pieces=self.pieces)


class ScriptedSettings(Strict):
    """Settings of a scripted route.

    Attributes:
        replies: the answers in order; after the last one the model repeats what it was told, as
            it does for an empty table among them.
        pause_s: time before each piece of an answer.
        takes_images: in user messages and tool results.
        budget: what the images of a request may take.
    """

    replies: tuple[ReplyTable, ...] = ()
    pause_s: float = Field(default=0, ge=0, le=60)
    takes_images: bool = True
    context_window: int | None = Field(default=None, ge=1)
    budget: BudgetLimits | None = None


def scripted_route(table: Table, provider: str, where: str) -> ScriptedRoute:
    """Return the route that a table describes.

    Raises:
        ProfileError: a key or a value makes no sense.
    """
    settings = validated(ScriptedSettings, table, where)
    takes = Capabilities(
        user_images=settings.takes_images,
        tool_images=settings.takes_images,
        context_window=settings.context_window,
        budget=None if settings.budget is None else settings.budget.budget(),
    )
    script = [reply.reply(settings.pause_s) for reply in settings.replies]
    return ScriptedRoute(script, provider=provider, takes=takes)
