"""Turns derived messages into turns that any provider takes: the common half of preparing a request.

What a provider would refuse for ever is made valid here, at request time and the same way each
time; the log keeps the original. Nothing is left out silently: text stands for it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from everfold.llm import access_paths
from everfold.llm.failure import FailureCode, ImagePlace, LlmError, LlmFailure
from everfold.llm.images import is_omitted
from everfold.llm.placeholders import file_handle_text, offloaded_image_text, quoted
from everfold.routes.limits import RouteLimits
from everfold.routes.pairing import NO_OUTPUT, Pairing, with_calls_as_text
from everfold.routes.parts import AnswerPart, CallPart, ImagePart, Part, TextPart, ThoughtPart, Turn
from everfold.routes.text_only import attachment_of, shown_as_text

Message = Mapping[str, Any]
BLANK = "(blank message)"
LATER_PROMPT = "[The system prompt is now:]"
_OWN_IDS = "sha256:"
_CALL_FIELDS = ("id", "name", "arguments")


def project(
    messages: Sequence[Message],
    provider: str,
    model: str,
    limits: RouteLimits,
    access_path: str | None = None,
    has_tools: bool = True,
) -> list[Turn]:
    """Return the turns of a request, in which every rule that providers share holds.

    Text is not blank, calls and answers pair under ids that the route takes (A10, M2, M5), other
    providers' private parts are gone (K6), omitted pictures and files are text (R255 to R259).

    Args:
        messages: derived messages in surface order.
        provider: the name of the route in logs.
        access_path: the template of where tools can read attachments; None for nowhere.
        has_tools: whether the request declares tools; without, calls and answers are text, since
            some providers refuse them then (D11).

    Raises:
        LlmError: UNSUPPORTED_CONTENT for a picture where the route takes none (R254).
    """
    projection = Projection(provider, model, limits, access_path, has_tools)
    for message in messages:
        projection.add(message)
    return projection.turns()


class Projection:
    """Projects a conversation message by message; `project` says how."""

    def __init__(
        self,
        provider: str,
        model: str,
        limits: RouteLimits,
        access_path: str | None,
        has_tools: bool,
    ) -> None:
        self._projector = _Projector(provider, model, limits, access_path)
        self._pairing = Pairing(limits.tool_ids)
        self._has_tools = has_tools
        self._moves_images = not (limits.is_text_only or limits.images.tool)
        self.settled: list[Turn] = []
        """The turns that no later message can change."""

    @property
    def images(self) -> list[ImagePart]:
        """The retained pictures so far, oldest first."""
        return self._projector.images

    def add(self, message: Message) -> None:
        """Take the next message.

        Raises:
            LlmError: as `project`.
        """
        for turn in self._projector.turns(message):
            self.settled.extend(self._placed(self._pairing.add(turn)))

    def rest(self) -> list[Turn]:
        """Return the turns that are not settled, as they are if no message follows."""
        return list(self._placed(self._pairing.rest()))

    def turns(self) -> list[Turn]:
        """Return all turns, as they are if no message follows."""
        return [*self.settled, *self.rest()]

    def _placed(self, turns: Iterable[Turn]) -> Iterable[Turn]:
        """Return turns in the form and at the place that the request allows."""
        if not self._has_tools:
            turns = with_calls_as_text(turns)
        return with_images_after_answers(turns) if self._moves_images else turns


def with_images_after_answers(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Yield turns whose tool answers hold text alone: their pictures follow in a user turn (M6)."""
    for turn in turns:
        if turn.role != "tool":
            yield turn
            continue
        moved: list[Part] = []
        parts = tuple(_without_images(part, moved) for part in turn.parts)
        yield replace(turn, parts=parts) if moved else turn
        if moved:
            yield Turn("user", tuple(moved))


def _without_images(answer: Part, moved: list[Part]) -> Part:
    """Return an answer with text for its pictures, which are put into `moved`."""
    if not isinstance(answer, AnswerPart):
        return answer
    parts: list[TextPart | ImagePart] = []
    for part in answer.parts:
        if isinstance(part, ImagePart):
            number = sum(isinstance(other, ImagePart) for other in moved) + 1
            parts.append(TextPart(f"[Image {number} of the next message.]"))
            moved.extend((TextPart(f"[Image {number}, from tool call {answer.id}:]"), part))
        else:
            parts.append(part)
    return replace(answer, parts=tuple(parts)) if len(moved) else answer


class _Projector:
    """Projects one request; counts its retained pictures on the way."""

    def __init__(
        self, provider: str, model: str, limits: RouteLimits, access_path: str | None
    ) -> None:
        self._provider, self._model = provider, model
        self._limits, self._access_path = limits, access_path
        self.images: list[ImagePart] = []
        self._is_first = True
        self._message_id, self._next_index = "", 0

    def turns(self, message: Message) -> Iterator[Turn]:
        """Yield the turns of a message: one, or none if nothing of it can be sent."""
        is_first, self._is_first = self._is_first, False
        self._message_id, self._next_index = str(message.get("id")), 0
        match message["role"]:
            case "assistant":
                turn = self._assistant(message)
            case "system":
                turn = self._system(message, is_first)
            case _:
                turn = Turn("user", self._parts(message["content"]) or (TextPart(BLANK),))
        if turn.parts:
            yield turn

    def _system(self, message: Message, is_first: bool) -> Turn:
        for block in message["content"]:
            if _kind(block) == "image":
                raise unsupported("the system prompt holds an image, which no route sends", message)
        parts = self._parts(message["content"])
        if is_first or self._limits.system_prompt_update is not None or not parts:
            return Turn("system", parts)
        return Turn("user", (TextPart(LATER_PROMPT), *parts))

    def _assistant(self, message: Message) -> Turn:
        source = message.get("source", {})
        is_own = (source.get("provider"), source.get("model")) == (self._provider, self._model)
        parts: list[Part] = []
        indexes: list[int] = []
        for index, block in enumerate(message["content"]):
            part = self._assistant_part(block, is_own, message)
            if part is not None:
                parts.append(part)
                indexes.append(index)
        if all(isinstance(part, ThoughtPart) for part in parts):
            return Turn("assistant", ())
        state = source.get("replayState") if is_own else None
        return Turn("assistant", tuple(parts), state, tuple(indexes))

    def _assistant_part(self, block: Any, is_own: bool, message: Message) -> Part | None:
        match _kind(block):
            case "reasoning" if is_own and isinstance(block.get("text"), str):
                return ThoughtPart(block["text"])
            case "reasoning":
                return None
            case "tool-call" if all(isinstance(block.get(key), str) for key in _CALL_FIELDS):
                return CallPart(block["id"], block["name"], block["arguments"])
            case "image" if not is_omitted(block) and not self._limits.is_text_only:
                if not self._limits.images.assistant:
                    raise unsupported("it holds an image that a model made", message)
                return self._image(block, self._place(), is_omittable=False)
            case _:
                return self._part(block)

    def _parts(self, content: Sequence[Any]) -> tuple[Part, ...]:
        parts: list[Part] = []
        for block in content:
            if _kind(block) == "tool-result":
                parts.append(self._answer(block))
                continue
            part = self._part(block)
            if part is not None:
                parts.append(part)
        return tuple(parts)

    def _answer(self, block: Mapping[str, Any]) -> AnswerPart:
        content = block.get("content")
        parts = tuple(self._flat(content if isinstance(content, list) else ()))
        id_, is_error = str(block.get("toolCallId")), block.get("isError") is True
        return AnswerPart(id_, parts or (TextPart(NO_OUTPUT),), is_error)

    def _flat(self, content: Sequence[Any]) -> Iterator[TextPart | ImagePart]:
        """Yield the parts of an answer; answers inside it are opened, in traversal order (R202)."""
        for block in content:
            if _kind(block) == "tool-result" and isinstance(block.get("content"), list):
                yield from self._flat(block["content"])
                continue
            part = self._part(block)
            if part is not None:
                yield part

    def _part(self, block: Any) -> TextPart | ImagePart | None:
        """Return what is sent for a block that may stand in any message; None for blank text."""
        match _kind(block):
            case "text":
                text = block.get("text")
                return TextPart(text) if isinstance(text, str) and text.strip() else None
            case "image":
                return self._input_image(block)
            case "file":
                attachment = attachment_of(block)
                return TextPart(file_handle_text(attachment, self._path_to(attachment)))
            case kind:
                return TextPart(f"[Content of type {quoted(kind)}, which cannot be shown here.]")

    def _path_to(self, attachment: Mapping[str, Any]) -> str | None:
        return access_paths.access_path(self._access_path, attachment)

    def _input_image(self, block: Mapping[str, Any]) -> TextPart | ImagePart:
        place = self._place()
        if self._limits.is_text_only:
            return TextPart(shown_as_text(block))
        attachment = attachment_of(block)
        if is_omitted(block):
            return TextPart(offloaded_image_text(attachment, self._path_to(attachment)))
        if not str(attachment.get("attachmentId", "")).startswith(_OWN_IDS):
            return TextPart(
                f"[Image {quoted(str(attachment.get('attachmentId')))} is kept elsewhere.]"
            )
        return self._image(block, place)

    def _place(self) -> ImagePlace:
        """Return the place of the next image of the message; each one is counted, omitted or not."""
        self._next_index += 1
        return ImagePlace(self._message_id, self._next_index - 1)

    def _image(
        self, block: Mapping[str, Any], place: ImagePlace, is_omittable: bool = True
    ) -> ImagePart:
        part = ImagePart(block, len(self.images), is_omittable, place)
        self.images.append(part)
        return part


def _kind(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else "unknown"


def unsupported(reason: str, message: Message) -> LlmError:
    """Return the failure of a message that the route cannot send, with what the user can do."""
    return LlmError(
        LlmFailure(
            f"message {message.get('id')!r} cannot be sent: {reason}; compact the session, or "
            "choose a route that takes it",
            FailureCode.UNSUPPORTED_CONTENT,
        )
    )
