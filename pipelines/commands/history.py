"""`penstock history`."""

from itertools import islice

import click

from pipelines import console
from pipelines.commands.parts import (
    Options,
    cluster_option,
    json_option,
    lake_of,
    only_cluster,
    print_json,
    topic_argument,
)

_SHOWN = 20


@click.command("history")
@topic_argument
@click.option("--limit", type=click.IntRange(1), default=_SHOWN, show_default=True, help="How many of the newest.")
@cluster_option
@json_option
@click.pass_obj
def history_command(options: Options, topic: str, limit: int, cluster: str | None, as_json: bool) -> None:
    """Show what was done to the table of TOPIC, newest first.

    Each commit is a line: loads, replays, rewinds, and what others did.

    \b
    Examples:
      penstock history clicks
      penstock history clicks --limit 1 --json
    """
    from pipelines.loading.table import LakeTable
    from pipelines.mending.history import history

    settings = options.settings()
    table = LakeTable.of(lake_of(settings), only_cluster(settings, cluster), topic)
    past = list(islice(history(table), limit))
    if as_json:
        print_json([one.as_dict() for one in past])
    else:
        console.history(past)
