"""Why a recording cannot be read, made or played."""

from everfold.session.errors import SessionError


class RecordingError(SessionError):
    """A recording is not there, is no recording, or cannot be made of this session."""

    code = "recording"
