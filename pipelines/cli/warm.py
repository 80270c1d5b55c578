"""`penstock warm`: compiles decoders ahead."""

import click

from pipelines.cli.options import GlobalOptions
from pipelines.cli.output import console
from pipelines.cli.output.result import CommandResult, prints_result
from resources.printed import printed


@click.command("warm")
@click.option("--all", "every", is_flag=True, help="Compile all decoders. This needs no settings file.")
@prints_result
def warm_command(options: GlobalOptions, every: bool) -> CommandResult:
    """Compile the decoders before the first load.

    The first load then does not wait for it. Decoders are compiled once for a machine and user, or once for an image of
    containers. Without --all these are the decoders for the formats in the settings. The machine code is in
    NUMBA_CACHE_DIR, otherwise in ~/.cache/numba. A new version of Penstock compiles again.

    \b
    Examples:
      penstock warm
      penstock warm --all
    """
    from pipelines.fetch.warming import DECODERS, compiled, needed

    names = list(DECODERS) if every else needed(options.settings())
    return CommandResult(records=[printed(decoder) for decoder in compiled(names)], show=console.warmed)
