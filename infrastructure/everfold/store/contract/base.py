"""What every part of the suite starts from: one open store on an empty database."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from everfold.session.ports import SessionStore

StoreOpener = Callable[[], AbstractContextManager[SessionStore]]
"""Opens the database of the running test; called again, it opens the same database again."""


class ContractPart:
    """Gives the fixture `store`; the suite's user gives the fixture `open_store`."""

    @pytest.fixture
    def store(self, open_store: StoreOpener) -> Iterator[SessionStore]:
        """An open store without any stream."""
        with open_store() as store:
            yield store
