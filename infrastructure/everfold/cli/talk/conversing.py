"""A conversation: messages go to the model, lines that begin with a slash are commands."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import click

from everfold.agent.content import Part
from everfold.cli import output
from everfold.cli.advising import message_of
from everfold.cli.options import Run
from everfold.cli.talk.asking import Talk, existing, parts_of
from everfold.cli.talk.attaching import attached, attachments_text
from everfold.cli.talk.beginning import Beginning, opening
from everfold.cli.talk.choosing import COLUMNS, SPARE, chosen, listed, row, totals
from everfold.cli.talk.compacting import compact, outcome_text
from everfold.cli.talk.host import note
from everfold.cli.talk.recording import MaybeRecorder
from everfold.cli.talk.targets import check_images
from everfold.cli.talk.telling import failure_text
from everfold.profiles.opening import OpenProfile
from everfold.projections.image_offload.bring_back import TYPE as BRING_BACK
from everfold.projections.image_offload.projection import TYPE as OMIT
from everfold.recordings.recording import Act
from everfold.session.deciding import AppendEvent
from everfold.session.errors import SessionError
from everfold.session.frozen import Json

HELP = """/image PATH…       show images with the next message; quote a path that has spaces
/file PATH…        attach files, kept as they are, to the next message
/images            list the images of this session
/omit IMAGE…       omit images from now on, named as /images lists them
/bring-back IMAGE… show omitted images again
/compact [FOCUS]   replace older messages by a summary
/title TITLE       give this session a title
/help              this list
/quit              leave; Ctrl-D does too
Another line is a message; begin it with // if its first character is a slash."""


@dataclass(slots=True)
class Conversation:
    """One conversation.

    Attributes:
        beginning: begins the session when something is said.
        is_interactive: whether a person types; else a Ctrl-C ends the program.
        waiting: images and files for the next message.
        failures: how many messages got no answer, and how many commands were refused.
        talk: None while nothing was said in a new session.
    """

    program: Run
    beginning: Beginning
    is_interactive: bool
    waiting: list[Part] = field(default_factory=list)
    failures: int = 0
    talk: Talk | None = None

    def run(self, lines: Iterable[str]) -> None:
        """Take lines until they end, or one of them says so.

        Raises:
            KeyboardInterrupt: nobody types, and the program was interrupted.
        """
        for line in lines:
            try:
                if not self._take(line):
                    return
            except KeyboardInterrupt:
                note("cancelled; the session keeps what came")
                if self.beginning.work.ending.is_asked or not self.is_interactive:
                    raise
            except (SessionError, click.ClickException) as error:
                self.failures += 1
                said = (
                    error.message if isinstance(error, click.ClickException) else message_of(error)
                )
                self._refused("; ".join((said, *getattr(error, "__notes__", ()))))

    def _take(self, line: str) -> bool:
        """Do what a line says; False for the last one."""
        text = line.strip()
        if not text.startswith("/") or text.startswith("//"):
            self._say(line[1:] if text.startswith("//") and line.startswith("/") else line)
            return True
        name, _, rest = text[1:].partition(" ")
        if name in ("quit", "exit"):
            return False
        command = self._commands().get(name)
        if command is None:
            raise click.UsageError(f"there is no command /{name}; /help lists them")
        command(rest.strip())
        return True

    def _commands(self) -> dict[str, Callable[[str], None]]:
        return {
            "help": lambda _: output.say(HELP),
            "image": lambda rest: self._attach("image", rest),
            "file": lambda rest: self._attach("file", rest),
            "images": self._images,
            "omit": lambda rest: self._decide(OMIT, rest),
            "bring-back": lambda rest: self._decide(BRING_BACK, rest),
            "compact": self._compact,
            "title": self._title,
        }

    def _say(self, text: str) -> None:
        if not text.strip() and not self.waiting:
            return
        content = parts_of(text if text.strip() else "", self.waiting)
        self.waiting = []
        talk = self.talk or self._begun(opening(self._host, content))
        self._recorder.asked(content)
        try:
            result = talk.ask(content)
        except KeyboardInterrupt:
            self._recorder.note(Act("cancel"))
            raise
        if not result.is_completed:
            self.failures += 1
            self._refused(failure_text(result))

    def _attach(self, kind: str, rest: str) -> None:
        paths = existing(_words(rest))
        if not paths:
            raise click.UsageError(f"name a file: /{kind} PATH")
        images, files = (paths, ()) if kind == "image" else ((), paths)
        self.waiting += attached(self._host, images, files, as_file="/file PATH")
        note(f"{attachments_text(self.waiting)} with the next message")

    def _images(self, _: str) -> None:
        host = self._host
        session_id = self.talk.agent.session_id if self.talk else None
        found = listed(host.sessions, session_id, host.attachments) if session_id else []
        if found:
            output.table(COLUMNS, map(row, found), spare=SPARE, is_cut=True)
        output.say(totals(found))

    def _decide(self, type_: str, rest: str) -> None:
        wanted = chosen(_words(rest))
        if not wanted:
            raise click.UsageError("name images as /images lists them, for instance 5:0")
        if self.talk is None:
            raise click.UsageError("nothing was said yet, so there is no image to decide about")
        check_images(self._host.sessions.load(self.talk.agent.session_id), wanted)
        targets = [{"seq": seq, "imageIndexes": sorted(wanted[seq])} for seq in wanted]
        self._append(type_, {"targets": targets})

    def _title(self, rest: str) -> None:
        if not rest:
            raise click.UsageError("give a title: /title TITLE")
        source = {"kind": "user"}
        self._append("session/title", {"title": rest, "messageSeqs": [], "source": source})

    def _append(self, type_: str, data: Json) -> None:
        wish = AppendEvent(type_, data)
        access = self._host.access((self.talk or self._begun((wish,))).agent.session_id)
        access.view()
        event = access.append((wish,))[0]
        self._recorder.note(Act("append", type=type_, data=data))
        note(f"stored: {event.type} (seq {event.seq})")

    def _compact(self, rest: str) -> None:
        if self.talk is None:
            note("nothing was summarised: nothing was said yet")
            return
        agent = self.talk.agent
        asked = agent.settings.model
        self._recorder.note(Act("compact", focus=rest))
        outcome = compact(
            self._host,
            self.talk.runner,
            agent.session_id,
            focus=rest,
            route=asked.provider,
            model=asked.model,
        )
        note(outcome_text(outcome))

    def _begun(self, first: Sequence[AppendEvent]) -> Talk:
        self.talk = self.beginning.begun(first)
        return self.talk

    @property
    def _host(self) -> OpenProfile:
        return self.beginning.work.host

    @property
    def _recorder(self) -> MaybeRecorder:
        return self.beginning.work.recorder

    def _refused(self, said: str) -> None:
        note(self.program.clean(said))


def _words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise click.UsageError(f"{rest!r}: {error}") from error
