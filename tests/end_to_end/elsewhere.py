"""What other processes do with the product: each function opens a host of its own."""

import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from everfold.projections.compaction.engine import Compacted
from everfold.projections.compaction.errors import CompactionError
from everfold.projections.image_offload.decisions import omit
from tests.end_to_end.product import Product, make_profile, route_table, running
from tests.providers.strict_fake import StrictFake


@dataclass(frozen=True)
class Place:
    """Where a host is opened: store, provider, wire, session."""

    url: str
    fake_url: str
    wire: str
    session_id: str
    plugin: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()

    def profile(self) -> Any:
        """Return the profile; the provider is known by its URL alone."""
        fake = StrictFake(url=self.fake_url)
        plugin = {name: dict(settings) for name, settings in self.plugin}
        return make_profile({"main": route_table(fake, self.wire)}, plugin=plugin)

    def open(self) -> Any:
        """Return a context in which the product runs."""
        fakes = {"main": StrictFake(url=self.fake_url)}
        return running(self.url, self.profile(), fakes, self.session_id)


def talk(place: Place, *words: str) -> list[str]:
    """Say some things, and return how each turn ended."""
    with place.open() as product:
        return [product.say(each).kind for each in words]


def wait_in_tool(place: Place, pipe: Connection) -> None:
    """Run a turn whose tool reports its start and never comes back."""

    def wait() -> str:
        """Wait for ever."""
        pipe.send("running")
        time.sleep(600)
        return "never"

    with place.open() as product:
        product.tools = [wait]
        product.say("wait for it")


def answer_then_hang(place: Place, pipe: Connection) -> None:
    """Answer one message after a take-over, report it, and hang until killed."""
    with place.open() as product:
        pipe.send(product.say("what happened?").kind)
        time.sleep(600)


def shrink(place: Place) -> str:
    """Summarise the session, and return what came of it."""
    with place.open() as product:
        try:
            outcome = product.compact()
        except CompactionError as error:
            return str(error.code)
        return "compacted" if isinstance(outcome, Compacted) else "nothing"


def omit_first(place: Place) -> int:
    """Omit the oldest picture, and return the seq of the decision."""
    with place.open() as product:
        seq = first_user_message(product)
        return omit(product.access, {seq: [0]}).seq


def first_user_message(product: Product) -> int:
    """Return the seq of the first message of a user."""
    return next(event.seq for event in product.log() if event.type == "user/message")
