"""The two commands that decide about images: `omit` and `bring-back`."""

from collections.abc import Callable, Mapping, Sequence

from everfold.cli import output
from everfold.cli.options import Run, writing_sessions
from everfold.cli.reading import check_session
from everfold.cli.talk.choosing import chosen
from everfold.cli.talk.targets import check_images
from everfold.host.access import HostedSession
from everfold.session.access import SessionAccess
from everfold.session.events import Origin, Recorded

Decide = Callable[[SessionAccess, Mapping[int, Sequence[int]]], Recorded]

USER = Origin(actor="user")


def decide(
    run: Run, session: str, words: Sequence[str], store: str | None, decision: Decide
) -> Recorded:
    """Make one logged decision about images of a session, and return its event.

    Raises:
        click.UsageError: a word names no image.
        SessionError: refused; nothing changed.
    """
    wanted = chosen(words)
    with writing_sessions(run.url(store)) as sessions:
        check_session(sessions.store, session)
        check_images(sessions.load(session), wanted)
        return decision(HostedSession(sessions, session, USER), wanted)


def report(session: str, event: Recorded, said: str, *, as_json: bool) -> None:
    """Say what was decided."""
    targets = event.data["targets"]
    if as_json:
        output.document(
            {"session": session, "seq": event.seq, "type": event.type, "targets": targets}
        )
        return
    count = sum(len(target["imageIndexes"]) for target in targets)
    noun = "image" if count == 1 else "images"
    output.say(f"{count} {noun} {said} (seq {event.seq}, {event.type})")
