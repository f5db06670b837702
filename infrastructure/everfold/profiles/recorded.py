"""A route that answers from a recording, as a profile describes it."""

from everfold.llm.route import Route
from everfold.profiles.checking import Strict, Table, validated
from everfold.profiles.errors import ProfileError
from everfold.recordings.errors import RecordingError
from everfold.recordings.files import read_recording
from everfold.recordings.playing import Player


class RecordedSettings(Strict):
    """Settings of a route that plays a recording.

    Attributes:
        recording: the name of a shipped one, or a file; None where a replay brings its own route.
    """

    recording: str | None = None


def recorded_route(table: Table, provider: str, where: str) -> Route:
    """Return a route that gives the recorded answers in their order, whatever it is asked.

    Raises:
        ProfileError: a key or a value makes no sense, or there is no such recording.
    """
    named = validated(RecordedSettings, table, where).recording
    if named is None:
        raise ProfileError(
            f"{where} answers from a recording: name one as recording = 'NAME or FILE'; without "
            "it only a replay of one asks it"
        )
    try:
        recording = read_recording(named)
    except RecordingError as error:
        raise ProfileError(f"{where}: {error}") from error
    return Player(recording).route(provider)
