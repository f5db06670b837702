"""The attachments that belong to a store: which are there, which are not, and where they should be."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from everfold.attachments.references import Holds
from everfold.cli.location import PROFILE, without_secrets
from everfold.session.errors import StoreError

_SERVERS = ("postgresql", "postgres")


class Holding:
    """Looks for attachments at their place, and makes none; it is opened at the first question.

    Attributes:
        place: a folder, or the URL of a server without its password.
    """

    def __init__(self, url: str, stack: ExitStack) -> None:
        self._url = url
        self._stack = stack
        self._known: dict[str, bool] = {}
        self._store: Holds | None = None
        self._is_server = urlsplit(url).scheme in _SERVERS
        self._trouble = ""
        self.place = without_secrets(url, url) if self._is_server else url

    def has(self, attachment_id: str) -> bool:
        """Tell whether bytes are stored under this id; none are where nothing can be read."""
        if attachment_id not in self._known:
            self._known[attachment_id] = self._look(attachment_id)
        return self._known[attachment_id]

    def told(self, count: int) -> str:
        """Return where so many missing attachments should be, and what to do."""
        which = "it is" if count == 1 else "they are"
        them = "it" if count == 1 else "them"
        return (
            f"{which} not in {self.place}{self._trouble}; "
            f'copy {them} from where the session was made (docs/cli.md, "Backups")'
        )

    def _look(self, attachment_id: str) -> bool:
        if not self._is_server and not Path(self._url).exists():
            return False
        try:
            if self._store is None:
                self._store = _open(self._url, self._stack)
            return self._store.has(attachment_id)
        except StoreError as error:
            self._trouble = f" ({without_secrets(error.fact, self._url)})"
            return False


@contextmanager
def holding(store_url: str) -> Iterator[Holding]:
    """Find the attachments of a store: where the profile in use has them, else the store's own.

    Raises:
        ProfileError: the profile in use makes no sense.
    """
    from everfold.profiles.attaching import attachments_of

    place = attachments_of(store_url, _named())
    assert place is not None, "no command works on a store in memory"
    with ExitStack() as stack:
        yield Holding(place, stack)


def _named() -> str | None:
    from everfold.profiles.loading import VARIABLE, load_profile, located

    if not os.environ.get(VARIABLE) and not Path(PROFILE).is_file():
        return None
    profile = load_profile()
    return located(profile.attachments, profile.folder)


def _open(place: str, stack: ExitStack) -> Holds:
    if urlsplit(place).scheme in _SERVERS:
        from everfold.attachments.postgres import PostgresAttachments

        return stack.enter_context(PostgresAttachments(place, create=False))
    from everfold.attachments.filesystem import FileAttachments

    return FileAttachments(place, create=False)
