"""Makes the recordings that everfold ships: `python -m tests.recordings.making FOLDER [NAME…]`."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

from everfold.recordings.files import SUFFIX, text_of
from everfold.recordings.recording import Recording
from tests.providers.answers import Answer, Refuse, ToolUse
from tests.providers.pictures import img
from tests.providers.rules import STRICT
from tests.providers.strict_fake import strict_fake
from tests.recordings.taping import table, taping

LONG = "The crane at berth four lifts containers of up to forty tonnes. " * 8
SMALL_SPANS = {"keep_tokens": 40, "min_span_tokens": 20}


def tide(port: str) -> str:
    """Say when the next high tide is."""
    if port == "nowhere":
        raise LookupError("there is no port 'nowhere'")
    return f"High tide at {port}: 14:20"


async def never(port: str) -> str:
    """Watch a port for ever."""
    await asyncio.Event().wait()
    return port


async def plain_turn() -> Recording:
    """Two turns of text, with reasoning and usage."""
    with strict_fake() as fake:
        fake.will(Answer("At 14:20.", reasoning="They ask for the ferry."), Answer("Yes."))
        async with taping(table(fake)) as tape:
            await tape.ask("When does the ferry leave?")
            await tape.ask("Is it on time?")
            return tape.recording(plain_turn.__doc__ or "")


async def tools() -> Recording:
    """Two tool calls at once, one of which fails; then wrong arguments; then the answer."""
    both = (
        ToolUse("call_1", "tide", '{"port": "Ystad"}'),
        ToolUse("call_2", "tide", '{"port": "nowhere"}'),
    )
    wrong = (ToolUse("call_3", "tide", '{"harbour": 1}'),)
    with strict_fake() as fake:
        fake.will(
            Answer("", calls=both, finish="tool-calls"),
            Answer("Once more.", calls=wrong, finish="tool-calls"),
            Answer("At 14:20."),
        )
        async with taping(table(fake), [tide]) as tape:
            await tape.ask("When is high tide?")
            return tape.recording(tools.__doc__ or "")


async def images_under_budget() -> Recording:
    """Images that fit: in the user's message, the same one twice."""
    with strict_fake() as fake:
        async with taping(table(fake)) as tape:
            await tape.ask("What is on these?", img(300, shade=1), img(300, shade=2))
            await tape.ask("And on this?", img(300, shade=1))
            return tape.recording(images_under_budget.__doc__ or "")


async def offload_and_retry() -> Recording:
    """Six equal attachments; the three oldest are omitted for a budget in base64 (R354)."""
    picture = img(300, shade=7)
    budget = {"representation": "base64", "max_bytes": 1200, "byte_quantum": 1}
    with strict_fake() as fake:
        route = {"limits": {"inline": budget}}
        async with taping(table(fake, route=route)) as tape:
            await tape.ask("Compare these.", *[picture] * 6)
            await tape.ask("And now?")
            return tape.recording(offload_and_retry.__doc__ or "")


async def offload_inside_summary() -> Recording:
    """The provider takes fewer images by the time of a summary: omitted inside its bracket (R355)."""
    with strict_fake() as fake:
        settings = {"compaction": SMALL_SPANS}
        async with taping(table(fake, plugin=settings)) as tape:
            await tape.ask(LONG, img(300, shade=1), img(300, shade=2), img(300, shade=3))
            await tape.ask("Which is the newest?")
            fake.rules = replace(STRICT, max_images=1)
            fake.will(Answer("The user showed three pictures of a crane."))
            await tape.compact()
            await tape.ask("Go on.")
            return tape.recording(offload_inside_summary.__doc__ or "")


async def inline_fallback() -> Recording:
    """Uploads fail, so images go inline, under a tighter budget that omits one of them (R253)."""
    route = {
        "adapter": "openai-responses",
        "limits": {"inline": {"max_bytes": 900, "byte_quantum": 1, "max_images": 20}},
    }
    with strict_fake() as fake:
        fake.upload_refusal = Refuse(500, b"Internal Server Error")
        async with taping(table(fake, route=route)) as tape:
            await tape.ask("Compare.", *(img(300, shade=shade) for shade in (1, 2, 3)))
            fake.upload_refusal = None
            await tape.ask("And now?")
            return tape.recording(inline_fallback.__doc__ or "")


async def overflow_compaction() -> Recording:
    """The provider's window overflows; older messages are summarised and the request is sent again."""
    with strict_fake() as fake:
        settings = {"compaction": SMALL_SPANS}
        async with taping(table(fake, plugin=settings)) as tape:
            await tape.ask(LONG)
            await tape.ask("Noted?")
            fake.rules = replace(STRICT, max_chars=1200)
            fake.will(Answer("The user described a crane that lifts forty tonnes."))
            await tape.ask("How much does it lift? " + "Think of berth four. " * 40)
            return tape.recording(overflow_compaction.__doc__ or "")


async def cancellation() -> Recording:
    """A turn is cancelled amid its answer, another one amid a tool; what was delivered is kept."""
    replies = [
        {"text": "Once upon a time", "hangs": True},
        {"calls": [{"id": "call_1", "name": "never", "arguments": {"port": "Ystad"}}]},
        {"text": "Yes."},
    ]
    async with taping(table(route={"replies": replies}), [never]) as tape:
        await tape.ask_and("cancel", "Tell me a long story.")
        await tape.ask_and("cancel", "Watch the port.")
        await tape.ask("Are you there?")
        return tape.recording(cancellation.__doc__ or "")


async def crash_and_resume() -> Recording:
    """The process ends while a tool runs; another one takes over and never repeats the call."""
    replies = [
        {"calls": [{"id": "call_1", "name": "never", "arguments": {"port": "Ystad"}}]},
        {"text": "I cannot tell whether the port was watched."},
    ]
    async with taping(table(route={"replies": replies}), [never]) as tape:
        await tape.ask_and("crash", "Watch the port.")
        await tape.resume()
        await tape.ask("What happened?")
        return tape.recording(crash_and_resume.__doc__ or "")


SCENES: Mapping[str, Callable[[], Awaitable[Recording]]] = {
    scene.__name__.replace("_", "-"): scene
    for scene in (
        plain_turn,
        tools,
        images_under_budget,
        offload_and_retry,
        offload_inside_summary,
        inline_fallback,
        overflow_compaction,
        cancellation,
        crash_and_resume,
    )
}


async def made(name: str) -> Recording:
    """Return a freshly made recording."""
    return await SCENES[name]()


def main(folder: Path, names: list[str]) -> None:
    """Make recordings and write them into a folder."""
    for name in names or list(SCENES):
        (folder / f"{name}{SUFFIX}").write_text(text_of(asyncio.run(made(name))), "ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
