"""Opens the product on a store, with the standing checks around every test."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.product import Product, make_profile, route_table, running
from tests.end_to_end.standing import Standing
from tests.field_reports.witness import Witness
from tests.postgres import fresh_schema
from tests.providers.rules import STRICT
from tests.providers.strict_fake import StrictFake, strict_fake

WIRES = ("chat", "messages", "responses")
Opening = Callable[..., Product]


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    """The form of requests; the test runs on each one."""
    name: str = request.param
    return name


@pytest.fixture
def new_fake() -> Iterator[Callable[[], StrictFake]]:
    """Starts providers on loopback that check every rule which all providers have."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(strict_fake(STRICT))


@pytest.fixture
def fake(new_fake: Callable[[], StrictFake]) -> StrictFake:
    """The provider of the route that is asked."""
    return new_fake()


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of an SQLite store whose file does not exist yet; tests may have another fixture."""
    return f"sqlite:///{tmp_path / 'agents.sqlite'}?synchronous=off"


@pytest.fixture(autouse=True)
def standing(
    url: str, tmp_path: Path, postgres_server_url: str, new_fake: Callable[[], StrictFake]
) -> Iterator[Standing]:
    """S1 to S7, checked when the test has ended and the product is closed; providers still run."""
    del new_fake
    is_server = url.startswith("postgresql:")
    aside = f"sqlite:///{tmp_path / 'standing.sqlite'}"
    schema = nullcontext(aside) if is_server else fresh_schema(postgres_server_url)
    with schema as other_url:
        found = Standing(url, other_url, Witness([_plain(url)]))
        yield found
        if found.profile is None:
            return
        found.check_bodies()
        if found.has_last_message:
            found.check_last_message()
        found.check_store()


@pytest.fixture
def opened(url: str, fake: StrictFake, wire: str, standing: Standing) -> Iterator[Opening]:
    """Opens the product with one route on the wire under test; may be called again, as after a restart."""
    with ExitStack() as stack:
        products: list[Product] = []

        def open_it(
            limits: Mapping[str, Any] | None = None,
            *,
            session_id: str | None = None,
            route: Mapping[str, Any] | None = None,
            routes: Mapping[str, Any] | None = None,
            fakes: Mapping[str, StrictFake] | None = None,
            **more: Any,
        ) -> Product:
            own = {"main": route_table(fake, wire, limits, **(route or {}))}
            profile = make_profile(own if routes is None else routes, **more)
            found = {"main": fake} if fakes is None else fakes
            product = stack.enter_context(running(url, profile, found, session_id))
            standing.note(product)
            products.append(product)
            return product

        yield open_it
        bounds = [product.most_calls for product in products if product.most_calls is not None]
        for product in products:
            product.most_calls = max(bounds, default=None)
            standing.check_product(product)


def _plain(url: str) -> str:
    return url.split("?")[0] if url.startswith("sqlite:") else url
