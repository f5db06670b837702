"""`everfold omit`: chosen images are shown to no model any more."""

import click

from everfold.cli.options import Run, json_option, pass_run, store_option
from everfold.cli.talk.deciding import decide, report
from everfold.projections.image_offload.decisions import omit


@click.command("omit")
@click.argument("session")
@click.argument("images", nargs=-1, required=True, metavar="SEQ:INDEX...")
@store_option
@json_option
@pass_run
def command(
    run: Run, session: str, images: tuple[str, ...], store: str | None, as_json: bool
) -> None:
    """Omit images of SESSION from every later request, as one logged decision.

    Models read a placeholder in their place. Nothing is deleted; `everfold bring-back` shows them
    again. `everfold images` lists what SEQ:INDEX are.
    """
    event = decide(run, session, images, store, omit)
    report(session, event, "omitted from now on", as_json=as_json)
