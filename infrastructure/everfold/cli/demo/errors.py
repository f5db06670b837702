"""Why a demonstration stopped."""

from everfold.session.errors import SessionError


class DemoError(SessionError):
    """The demonstration could not be carried through; the message says where it stopped."""

    code = "demo"
