"""SDK clients live as long as their event loop."""

import asyncio
import gc
import weakref

from everfold.routes.sending import ClientPerLoop


class Client:
    """Holds on to its loop, as connections do."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_closed = False
        MADE.append(weakref.ref(self))

    async def close(self) -> None:
        self.is_closed = True


MADE: list[weakref.ref[Client]] = []


def test_the_clients_of_loops_that_are_over_are_let_go() -> None:
    clients = ClientPerLoop(Client)
    MADE.clear()

    async def ask() -> None:
        clients.get()

    for _ in range(4):
        asyncio.run(ask())
    gc.collect()

    assert sum(made() is not None for made in MADE) <= 1


def test_a_closed_loop_client_is_made_anew_in_the_same_loop() -> None:
    clients = ClientPerLoop(Client)

    async def ask() -> tuple[bool, bool]:
        first = clients.get()
        await clients.close()
        return first.is_closed, clients.get() is first

    assert asyncio.run(ask()) == (True, False)
