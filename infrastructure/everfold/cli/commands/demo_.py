"""`everfold demo`: the whole life of a session with images, in one command."""

from pathlib import Path

import click

from everfold.attachments.admission import Notice, admit
from everfold.attachments.filesystem import FileAttachments
from everfold.cli import output
from everfold.cli.demo.place import place, sources_of
from everfold.cli.demo.report import Heading, lines_of, record_of
from everfold.cli.demo.story import play
from everfold.cli.demo.tool import image_block
from everfold.cli.edge import DONE, REFUSED
from everfold.cli.options import Run, json_option, pass_run
from everfold.cli.visible import one_line
from everfold.store.urls import open_store


@click.command("demo")
@click.argument("images", nargs=-1, type=click.Path(path_type=Path), metavar="[IMAGE]...")
@click.option("--store", metavar="PATH", help="SQLite file to use; else one in a fresh directory.")
@json_option
@pass_run
def command(run: Run, images: tuple[Path, ...], store: str | None, as_json: bool) -> int:
    """Host a session with IMAGEs (else four that are drawn) and show what becomes of it.

    A scripted model answers. Its route takes fewer images than the session has, so the oldest ones
    are omitted; the process is killed amid a tool call, another one resumes the session, it is
    forked twice and audited. Exit code 1 if any two views of it disagree.
    """
    sources = sources_of(images)
    with place(store or run.group_store) as chosen:
        attachments = FileAttachments(chosen.attachments)
        notices: list[Notice] = []
        blocks = list(map(image_block, admit(sources, attachments, notify=notices.append)))
        # A store that cannot be used is refused here, before a process is started for it.
        with open_store(chosen.url):
            pass
        story = play(chosen.url, attachments, blocks)
    if as_json:
        output.document(record_of(story, chosen.url))
    else:
        for notice in notices:
            name = one_line(sources[notice.index].name or "image")
            click.echo(f"note: {name}: {one_line(notice.text)}", err=True)
        for line in lines_of(story, chosen, len(sources)):
            (output.heading if isinstance(line, Heading) else output.say)(line)
    return DONE if story.agrees else REFUSED
