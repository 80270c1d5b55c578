"""`penstock topics`."""

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
    from pipelines.watching.status import now_ms

    settings, now = options.settings(), now_ms()
    known = [one for name in clusters_of(settings, cluster) for one in read_statuses(settings, name, now_ms=now)]
    found = [one for one in known if one.incarnation is not None]
    if as_json:
        print_json([one.as_dict(now) for one in found])
    else:
        console.topics(found)
