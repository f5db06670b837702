"""The suite that every store of sessions must pass; import it to prove a store of your own.

    from everfold.store.testing import SessionStoreContract

    class TestMyStore(SessionStoreContract):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda: MyStore(tmp_path / "db")

It needs pytest. Call `pytest.register_assert_rewrite("everfold.store.contract")` in your conftest
before the import to see the values of a failed assertion.
"""

from everfold.store.contract.appending import AppendContract, AppendKeyContract
from everfold.store.contract.following import GlobalOrderContract, SubscribeContract
from everfold.store.contract.reading import ReadContract, SnapshotContract, TopicContract
from everfold.store.contract.sharing import DurabilityContract, ThreadContract
from everfold.store.contract.streams import CopyContract, DeleteContract, StreamListContract
from everfold.store.contract.texts import TextContract


class PrivateStoreContract(
    AppendContract,
    AppendKeyContract,
    ReadContract,
    TopicContract,
    SnapshotContract,
    StreamListContract,
    DeleteContract,
    CopyContract,
    GlobalOrderContract,
    SubscribeContract,
    TextContract,
    ThreadContract,
):
    """For a store that lives and dies with the object that opened it.

    The user gives a fixture `open_store`: a callable that returns a context manager which yields
    a `SessionStore` without any stream.
    """


class SessionStoreContract(PrivateStoreContract, DurabilityContract):
    """For a store that several openers share, and that outlives them.

    As `PrivateStoreContract`; within one test every call of `open_store` opens the same database.
    """
