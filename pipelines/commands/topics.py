"""`penstock topics`."""

import time

import click

from pipelines import console
from pipelines.commands.parts import Options, cluster_option, clusters_of, json_option, print_json
from pipelines.commands.status import read_statuses


@click.command("topics")
@cluster_option
@json_option
@click.pass_obj
def topics_command(options: Options, cluster: str | None, as_json: bool) -> None:
    """Show what brokers hold, what tables hold, and the lag between.

    \b
    Examples:
      penstock topics
      penstock topics --cluster old --json
    """
    settings = options.settings()
    now_ms = time.time_ns() // 1_000_000
    known = [one for name in clusters_of(settings, cluster) for one in read_statuses(settings, name, now_ms=now_ms)]
    found = [one for one in known if one.incarnation is not None]
    if as_json:
        print_json([one.as_dict(now_ms) for one in found])
    else:
        console.topics(found)
