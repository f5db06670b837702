"""The suite that every store of attachments must pass; import it to prove a store of your own.

    from everfold.attachments.testing import AttachmentStoreContract

    class TestMyStore(AttachmentStoreContract):
        @pytest.fixture
        def open_attachments(self, tmp_path):
            return lambda: MyStore(tmp_path)

        @pytest.fixture
        def damage(self):
            return lambda attachment_id: ...  # change the stored bytes

It needs pytest.
"""

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from everfold.attachments.errors import (
    AttachmentCorruptError,
    AttachmentError,
    AttachmentIdError,
    AttachmentMissingError,
)
from everfold.attachments.ids import AttachmentId, id_of
from everfold.attachments.ports import AttachmentStore, Sizes, Version, every_id

AttachmentsOpener = Callable[[], AttachmentStore]
"""Opens the store of the running test; called again, it opens the same one again."""

Damage = Callable[[str], None]
"""Changes the stored bytes of an attachment behind the store's back, not their number."""

BAD_IDS = [
    "",
    "sha256:",
    "sha256:" + "a" * 63,
    "sha256:" + "A" * 64,
    "sha256:" + "a" * 64 + "\n",
    "sha256:../../../../etc/passwd",
    "sha1:" + "a" * 64,
    "a" * 64,
    "../" + "a" * 64,
    "sha256:" + "/" * 64,
    "sha256:" + "\x00" * 64,
]
ABSENT = id_of(b"never put")
OCTETS = bytes(range(256))


def version_of(data: bytes) -> Version:
    """Return a version whose bytes are `data`."""
    return Version(id_of(data), "image/png", len(data), 3, 2)


class ContractPart:
    """Gives the fixture `attachments`; the suite's user gives `open_attachments` and `damage`."""

    @pytest.fixture
    def attachments(self, open_attachments: AttachmentsOpener) -> AttachmentStore:
        """An open store without any attachment."""
        return open_attachments()


class BytesContract(ContractPart):
    """Putting, reading and removing."""

    def test_the_id_is_the_sha256_of_the_bytes(self, attachments: AttachmentStore) -> None:
        assert attachments.put(OCTETS) == "sha256:" + hashlib.sha256(OCTETS).hexdigest()

    @pytest.mark.parametrize("data", [b"", b"\x00", OCTETS, OCTETS * 8192])
    def test_what_was_put_is_read_in_another_opening(
        self, open_attachments: AttachmentsOpener, data: bytes
    ) -> None:
        id_ = open_attachments().put(data)

        assert open_attachments().read(id_) == data

    def test_equal_bytes_are_stored_once(self, attachments: AttachmentStore) -> None:
        ids = {attachments.put(b"same") for _ in range(40)}
        sizes = attachments.sizes()

        assert ids == {id_of(b"same")}
        assert (sizes.count, sizes.stored_bytes) == (1, 4)
        assert (sizes.put_count, sizes.logical_bytes) == (40, 160)

    def test_a_batch_gives_ids_in_its_order(self, attachments: AttachmentStore) -> None:
        ids = attachments.put_all([b"b", b"a", b"b"])

        assert ids == [id_of(b"b"), id_of(b"a"), id_of(b"b")]
        assert (attachments.sizes().count, attachments.sizes().put_count) == (2, 3)

    def test_an_empty_batch_stores_nothing(self, attachments: AttachmentStore) -> None:
        assert attachments.put_all([]) == []
        assert attachments.sizes().count == 0

    def test_absent_bytes_are_an_error_that_names_the_id(
        self, attachments: AttachmentStore
    ) -> None:
        with pytest.raises(AttachmentMissingError, match=ABSENT):
            attachments.read(ABSENT)

    def test_damaged_bytes_are_never_handed_out(
        self, attachments: AttachmentStore, damage: Damage
    ) -> None:
        id_ = attachments.put(b"fragile")
        damage(id_)

        with pytest.raises(AttachmentCorruptError, match=id_):
            attachments.read(id_)

    def test_putting_again_mends_damaged_bytes(
        self, attachments: AttachmentStore, damage: Damage
    ) -> None:
        id_ = attachments.put(b"fragile")
        damage(id_)

        attachments.put(b"fragile")

        assert attachments.read(id_) == b"fragile"

    def test_has_tells_what_is_there(self, attachments: AttachmentStore) -> None:
        id_ = attachments.put(b"here")

        assert attachments.has(id_)
        assert not attachments.has(ABSENT)

    def test_a_deleted_attachment_is_gone(self, attachments: AttachmentStore) -> None:
        id_, other = attachments.put_all([b"go", b"stay"])

        assert attachments.delete(id_)
        assert not attachments.delete(id_)
        assert not attachments.has(id_)
        assert attachments.read(other) == b"stay"
        assert attachments.sizes().put_count == 1

    @pytest.mark.parametrize("bad", BAD_IDS)
    def test_an_id_of_another_form_is_refused_everywhere(
        self, attachments: AttachmentStore, bad: str
    ) -> None:
        for act in (attachments.read, attachments.has, attachments.delete, attachments.page):
            if bad or act != attachments.page:
                with pytest.raises(AttachmentIdError):
                    act(bad)


class PagesContract(ContractPart):
    """Looking at everything."""

    def test_pages_give_every_id_once_in_order(self, attachments: AttachmentStore) -> None:
        ids = attachments.put_all([b"%d" % number for number in range(25)])

        pages = [attachments.page(None, 10)]
        while pages[-1]:
            pages.append(attachments.page(pages[-1][-1], 10))

        assert [len(page) for page in pages] == [10, 10, 5, 0]
        assert [id_ for page in pages for id_ in page] == sorted(ids)
        assert list(every_id(attachments, page_size=1)) == sorted(ids)

    def test_a_page_may_start_after_an_id_that_is_gone(self, attachments: AttachmentStore) -> None:
        ids = sorted(attachments.put_all([b"%d" % number for number in range(9)]))
        attachments.delete(ids[4])

        assert attachments.page(ids[4]) == ids[5:]

    def test_an_empty_store_has_an_empty_page(self, attachments: AttachmentStore) -> None:
        assert attachments.page() == []


class VersionsContract(ContractPart):
    """Records of request versions: the first one stays."""

    @pytest.fixture
    def original(self, attachments: AttachmentStore) -> AttachmentId:
        """An attachment to make versions of."""
        return attachments.put(b"original")

    def test_a_recorded_version_is_found_in_another_opening(
        self,
        attachments: AttachmentStore,
        original: AttachmentId,
        open_attachments: AttachmentsOpener,
    ) -> None:
        attachments.record_version(original, "png-1", version_of(b"v"), b"v")
        other = open_attachments()

        assert other.version(original, "png-1") == version_of(b"v")
        assert other.read(id_of(b"v")) == b"v"
        assert other.has(id_of(b"v"))

    def test_nothing_is_found_under_another_key_or_original(
        self, attachments: AttachmentStore, original: AttachmentId
    ) -> None:
        attachments.record_version(original, "png-1", version_of(b"v"), b"v")

        assert attachments.version(original, "png-2") is None
        assert attachments.version(ABSENT, "png-1") is None

    def test_the_first_record_wins(
        self, attachments: AttachmentStore, original: AttachmentId
    ) -> None:
        attachments.record_version(original, "k", version_of(b"first"), b"first")

        second = attachments.record_version(original, "k", version_of(b"second"), b"second")

        assert second == version_of(b"first")
        assert attachments.version(original, "k") == version_of(b"first")

    def test_the_original_may_be_its_own_version(
        self, attachments: AttachmentStore, original: AttachmentId
    ) -> None:
        attachments.record_version(original, "k", version_of(b"original"), None)

        assert attachments.version(original, "k") == version_of(b"original")
        assert attachments.sizes().version_bytes == 0

    def test_versions_are_counted_apart_and_not_listed(
        self, attachments: AttachmentStore, original: AttachmentId
    ) -> None:
        attachments.record_version(original, "k", version_of(b"abc"), b"abc")

        assert attachments.sizes().version_bytes == 3
        assert attachments.sizes().count == 1
        assert attachments.page() == [original]

    def test_versions_go_with_their_original(
        self, attachments: AttachmentStore, original: AttachmentId
    ) -> None:
        attachments.record_version(original, "k", version_of(b"v"), b"v")

        attachments.delete(original)

        assert attachments.version(original, "k") is None
        assert not attachments.has(id_of(b"v"))
        assert attachments.sizes().version_bytes == 0

    def test_equal_versions_of_two_originals_outlive_one_of_them(
        self, attachments: AttachmentStore, original: AttachmentId
    ) -> None:
        other = attachments.put(b"other")
        attachments.record_version(original, "k", version_of(b"v"), b"v")
        attachments.record_version(other, "k", version_of(b"v"), b"v")

        attachments.delete(original)

        assert attachments.read(id_of(b"v")) == b"v"

    def test_an_attachment_equal_to_a_version_outlives_it(
        self, attachments: AttachmentStore, original: AttachmentId
    ) -> None:
        attachments.record_version(original, "k", version_of(b"v"), b"v")
        attachments.put(b"v")

        attachments.delete(original)

        assert attachments.read(id_of(b"v")) == b"v"

    def test_no_version_is_recorded_without_an_original(self, attachments: AttachmentStore) -> None:
        with pytest.raises(AttachmentMissingError, match=ABSENT):
            attachments.record_version(ABSENT, "k", version_of(b"v"), b"v")

        assert attachments.version(ABSENT, "k") is None
        assert not attachments.has(id_of(b"v"))

    def test_bytes_that_are_not_the_version_s_are_refused(
        self, attachments: AttachmentStore, original: AttachmentId
    ) -> None:
        with pytest.raises(AttachmentError, match="other bytes"):
            attachments.record_version(original, "k", version_of(b"v"), b"w")

        assert attachments.version(original, "k") is None

    @pytest.mark.parametrize("key", ["", "../up", "A", "k" * 101, "a/b", "k\n"])
    def test_a_key_of_another_form_is_refused(
        self, attachments: AttachmentStore, original: AttachmentId, key: str
    ) -> None:
        with pytest.raises(AttachmentError, match="key"):
            attachments.record_version(original, key, version_of(b"v"), b"v")


class SharingContract(ContractPart):
    """Several openings at once."""

    def test_puts_of_the_same_bytes_at_once_store_them_once(
        self, open_attachments: AttachmentsOpener
    ) -> None:
        with ThreadPoolExecutor(8) as pool:
            ids = set(pool.map(lambda _: open_attachments().put(OCTETS * 100), range(24)))
        store = open_attachments()

        assert ids == {id_of(OCTETS * 100)}
        assert store.read(id_of(OCTETS * 100)) == OCTETS * 100
        assert store.sizes().stored_bytes == 25_600

    def test_batches_in_opposite_orders_do_not_wait_for_each_other(
        self, open_attachments: AttachmentsOpener
    ) -> None:
        datas = [b"%d" % number for number in range(20)]

        def put(turn: int) -> int:
            return len(open_attachments().put_all(datas if turn % 2 else datas[::-1]))

        with ThreadPoolExecutor(6) as pool:
            counts = list(pool.map(put, range(12)))

        assert counts == [20] * 12
        assert open_attachments().sizes().count == 20

    def test_two_recorders_at_once_serve_the_same_version(
        self, open_attachments: AttachmentsOpener
    ) -> None:
        original = open_attachments().put(b"original")

        def record(turn: int) -> Version:
            data = b"version %d" % turn
            return open_attachments().record_version(original, "k", version_of(data), data)

        with ThreadPoolExecutor(8) as pool:
            recorded = set(pool.map(record, range(16)))

        assert len(recorded) == 1
        (version,) = recorded
        assert id_of(open_attachments().read(version.attachment_id)) == version.attachment_id

    def test_a_store_that_deletes_does_not_break_one_that_records(
        self, open_attachments: AttachmentsOpener
    ) -> None:
        def act(turn: int) -> str:
            store = open_attachments()
            original = store.put(b"original")
            if turn % 2:
                store.delete(original)
                return "deleted"
            try:
                store.record_version(original, "k", version_of(b"v"), b"v")
            except AttachmentMissingError:
                return "missing"
            return "recorded"

        with ThreadPoolExecutor(4) as pool:
            outcomes = set(pool.map(act, range(24)))
        open_attachments().delete(id_of(b"original"))

        assert outcomes <= {"deleted", "missing", "recorded"}
        assert open_attachments().sizes() == Sizes(0, 0, 0, 0, 0)


class AttachmentStoreContract(BytesContract, PagesContract, VersionsContract, SharingContract):
    """What a store of attachments does.

    The user gives two fixtures: `open_attachments`, a callable that opens the test's store, which
    is empty at first; and `damage`, which changes the stored bytes of an attachment.
    """
