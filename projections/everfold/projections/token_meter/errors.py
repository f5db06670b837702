"""Why a meter cannot go on."""

from everfold.session.errors import SessionError


class MeterError(SessionError):
    """An event does not fit what was metered before; it stays unread (R305, R306, R309, R311)."""

    code = "meter"
