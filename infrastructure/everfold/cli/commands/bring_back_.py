"""`everfold bring-back`: omitted images are shown to models again."""

import click

from everfold.cli.options import Run, json_option, pass_run, store_option
from everfold.cli.talk.deciding import decide, report
from everfold.projections.image_offload.decisions import bring_back


@click.command("bring-back")
@click.argument("session")
@click.argument("images", nargs=-1, required=True, metavar="SEQ:INDEX...")
@store_option
@json_option
@pass_run
def command(
    run: Run, session: str, images: tuple[str, ...], store: str | None, as_json: bool
) -> None:
    """Show omitted images of SESSION to models again, as one logged decision.

    The decision that omitted them stays in the log. `everfold images` lists what SEQ:INDEX are.
    """
    event = decide(run, session, images, store, bring_back)
    report(session, event, "shown again from now on", as_json=as_json)
