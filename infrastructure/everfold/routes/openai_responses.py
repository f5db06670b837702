"""The OpenAI Responses API: pictures as uploaded files, inline when an upload fails."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from everfold.llm.budgets import ImageBudget
from everfold.llm.chunks import Chunk
from everfold.llm.failure import FailureCode, LlmError, LlmFailure
from everfold.llm.route import Capabilities, LlmRequest, Prepared
from everfold.routes.checks import check_images
from everfold.routes.incremental import Projected, Projections
from everfold.routes.limits import RouteLimits
from everfold.routes.openai_client import ERRORS, OFFICIAL_URL, clients, streaming
from everfold.routes.openai_responses_body import ResponsesForm, file_ids, responses_body
from everfold.routes.openai_responses_reader import ResponsesReader
from everfold.routes.pictures import ImageVersions, Picture, data_url, pictures_of, read_bytes
from everfold.routes.preparing import capabilities_of, outgoing_of, prepared, prepared_inline
from everfold.routes.rejections import Sent
from everfold.routes.sending import Request, Sender
from everfold.routes.settings import RouteSettings, Seconds
from everfold.routes.text_only import image_tokens
from everfold.routes.transports import MakeTransport
from everfold.routes.uploads import UploadBook, account_of
from everfold.routes.wire import Wire

_PATH = "/responses"
_UPLOADS_AT_ONCE = 4
_GONE = re.compile(r"no such|not (be )?found|does not exist|expired|deleted|no longer")
_FILE_ID = re.compile(r"[A-Za-z0-9_-]+")
_FATAL = frozenset((FailureCode.AUTH, FailureCode.CANCELLED))


class ResponsesSettings(RouteSettings):
    """Settings of a Responses route.

    Attributes:
        has_files: whether pictures are uploaded; without, they always travel inline.
        upload_s: how long the upload of one picture may take.
        purpose: what the Files API is told.
    """

    limits_of: str = "openai-responses"
    api_key_env: str | None = "OPENAI_API_KEY"
    has_files: bool = True
    upload_s: Seconds = 60
    purpose: str = "vision"


class OpenAiResponsesRoute:
    """A `Route` to the Responses API.

    Args:
        settings: where and how.
        versions: the pictures' request versions.
        uploads: which pictures the account holds already.
        transport: makes the HTTP transport of each SDK client; None for the SDK's own.
    """

    def __init__(
        self,
        settings: ResponsesSettings,
        versions: ImageVersions,
        uploads: UploadBook,
        transport: MakeTransport | None = None,
    ) -> None:
        self._settings, self._versions = settings, versions
        self._projections = Projections(settings.provider, ResponsesForm())
        self._limits = settings.route_limits()
        self._clients = clients(settings, transport)
        self._sender = Sender(ERRORS, settings.timeouts(), settings.secrets())
        self._files = _Files(settings, versions, uploads, self._clients.get, self._sender)

    @property
    def provider(self) -> str:
        """As `Route.provider`."""
        return self._settings.provider

    def capabilities(self, model: str) -> Capabilities:
        """As `Route.capabilities`."""
        return capabilities_of(self._limits_of(model))

    def image_tokens(self, model: str, images: Sequence[Mapping[str, Any]]) -> Sequence[int]:
        """As `Route.image_tokens`."""
        return image_tokens(images, self._limits_of(model))

    async def prepare(self, request: LlmRequest) -> Prepared:
        """As `Route.prepare`; pictures that the provider does not hold yet are uploaded.

        If an upload fails, all of them go inline, under the inline budget (R253).
        """
        if request.config.get("stop"):
            text = (
                "the Responses API takes no stop sequences; leave 'stop' out or use another route"
            )
            raise LlmError(LlmFailure(text, FailureCode.INVALID_REQUEST))
        model = request.config["model"]
        limits = self._limits_of(model)
        projected = self._projections.of(request, limits)
        if limits.files is None:
            return await self._inline(request, projected, limits)
        return await self._by_reference(request, projected, limits, limits.files.budget())

    async def stream(self, prepared: Prepared) -> AsyncIterator[Chunk]:
        """As `Route.stream`; a file that the provider lost is uploaded again at the next attempt."""
        outgoing = outgoing_of(prepared, self._limits_of)
        opener = streaming(self._clients.get, _PATH, outgoing.wire)
        request = Request(opener, outgoing.sent, outgoing.wire, outgoing.limits)
        try:
            async with aclosing(self._sender.answer(request, ResponsesReader())) as chunks:
                async for chunk in chunks:
                    yield chunk
        except LlmError as error:
            raise self._files.judged(error, lambda: prepared.body) from error.__cause__

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._clients.close()

    def _limits_of(self, model: str) -> RouteLimits:
        limits = self._limits.of(model)
        return limits if self._settings.has_files else limits.model_copy(update={"files": None})

    async def _inline(
        self, request: LlmRequest, projected: Projected, limits: RouteLimits
    ) -> Prepared:
        return await prepared_inline(
            projected.images,
            self._versions,
            limits,
            lambda inlined: responses_body(
                request,
                projected,
                lambda image: {
                    "image_url": data_url(inlined[image.at].picture, inlined[image.at].text)
                },
            ),
        )

    async def _by_reference(
        self,
        request: LlmRequest,
        projected: Projected,
        limits: RouteLimits,
        budget: ImageBudget,
    ) -> Prepared:
        pictures = await pictures_of(projected.images, self._versions, limits.request_version)
        check_images([picture.sent(is_inline=False) for picture in pictures], budget, limits)
        try:
            ids = await self._files.ids(pictures, limits)
        except LlmError as error:
            if error.failure.code in _FATAL:
                raise
            return await self._inline(request, projected, limits)
        built = responses_body(request, projected, lambda image: {"file_id": ids[image.at]})
        return prepared(built, pictures, budget, limits, is_inline=False)


@dataclass
class _Files:
    """The pictures at the provider: uploads what is not there yet."""

    settings: ResponsesSettings
    versions: ImageVersions
    book: UploadBook
    client: Callable[[], Any]
    sender: Sender

    @property
    def account(self) -> str:
        return account_of(self.settings.base_url or OFFICIAL_URL, self.settings.key())

    async def ids(self, pictures: Sequence[Picture], limits: RouteLimits) -> dict[int, str]:
        """Return the file id of each picture by `ImagePart.at`; equal pictures are uploaded once."""
        known = {picture.version.attachment_id: picture for picture in pictures}
        gate = asyncio.Semaphore(_UPLOADS_AT_ONCE)
        found: dict[str, str] = {}

        async def find(version_id: str, picture: Picture) -> None:
            async with gate:
                found[version_id] = await self._id(picture, limits)

        try:
            async with asyncio.TaskGroup() as group:
                for version_id, picture in known.items():
                    group.create_task(find(version_id, picture))
        except* LlmError as errors:
            raise _first(errors) from None
        return {picture.part.at: found[picture.version.attachment_id] for picture in pictures}

    def judged(self, error: LlmError, body: Callable[[], Mapping[str, Any]]) -> LlmError:
        """Return the error; one about a file that is gone is forgotten and may be tried again."""
        said = error.failure.message
        if not _GONE.search(said.lower()):
            return error
        named = frozenset(_FILE_ID.findall(said))
        gone = [file_id for file_id in dict.fromkeys(file_ids(body())) if file_id in named]
        for file_id in gone:
            self.book.forget(self.account, file_id)
        if not gone:
            return error
        text = f"{said}; the picture is uploaded again"
        return LlmError(replace(error.failure, message=text, code=FailureCode.SERVER))

    async def _id(self, picture: Picture, limits: RouteLimits) -> str:
        version_id = picture.version.attachment_id
        noted = await asyncio.to_thread(self.book.find, self.account, version_id)
        if noted is not None:
            return noted
        file_id = await self._uploaded(picture, limits)
        return await asyncio.to_thread(self.book.note, self.account, version_id, file_id)

    async def _uploaded(self, picture: Picture, limits: RouteLimits) -> str:
        data = await asyncio.to_thread(read_bytes, picture, self.versions)
        kind = picture.version.media_type
        name = f"{picture.version.attachment_id[7:23]}.{kind.removeprefix('image/')}"
        step = self.client().files.create(file=(name, data, kind), purpose=self.settings.purpose)
        about = Request(lambda: step, Sent(dict, 0, (), ImageBudget()), Wire(()), limits)
        file = await self.sender.call(step, self.settings.upload_s, FailureCode.TIMEOUT, about)
        return str(file.id)


def _first(errors: BaseExceptionGroup[LlmError]) -> LlmError:
    """Return one of the failures that uploads had, a fatal one if there is any."""
    found: list[LlmError] = []
    for error in errors.exceptions:
        found.extend([error] if isinstance(error, LlmError) else [_first(error)])
    return next((error for error in found if error.failure.code in _FATAL), found[0])
