"""What the newest `request/context` of a log says about the requests after it (R199)."""

from everfold.session.session import Session


def logged_access_path(session: Session) -> str | None:
    """Return the template of where tools can read attachments; None if the log names none."""
    context = session.latest("request/context")
    path = None if context is None else context.data.get("accessPath")
    return path if isinstance(path, str) else None
