"""`penstock status`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from pipelines import console
from pipelines.commands import completing
from pipelines.commands.parts import (
    FAILED,
    cluster_option,
    clusters_of,
    json_option,
    only_cluster,
    opened,
    print_json,
)
from resources.settings import Settings

if TYPE_CHECKING:
    from pipelines.watching.status import TopicStatus


@click.command("status")
@click.argument("topics", nargs=-1, metavar="[TOPIC]...", shell_complete=completing.topics)
@cluster_option
@json_option
@click.pass_context
def status_command(ctx: click.Context, topics: Sequence[str], cluster: str | None, as_json: bool) -> None:
    """Show how topics stand: lag, lateness, time until data is lost.

    What needs you most comes first. LATE is the age of the oldest record that is not loaded, LEFT the time until
    retention may delete it: "~" marks an estimate, "?" what is not known, "never" a topic that does not expire.

    A topic is losing (retention deleted what was not loaded, or may at any moment), in error, at risk (less than a
    quarter of its retention is left), behind, new (it has no rows yet), gone (from the cluster; its table stays), or
    loaded. Exit code 1: some topic is in error or losing.

    \b
    Examples:
      penstock status
      penstock status clicks views --cluster old
      penstock status --json
    """
    from pipelines.watching.status import State, now_ms

    settings = ctx.obj.settings()
    now = now_ms()
    names = [only_cluster(settings, cluster)] if topics else clusters_of(settings, cluster)
    found = [one for name in names for one in read_statuses(settings, name, topics, now_ms=now)]
    found.sort(key=lambda one: one.urgency(now))
    if as_json:
        print_json([one.as_dict(now) for one in found])
    else:
        console.statuses(found, now)
    ctx.exit(FAILED if any(one.state(now) in {State.ERROR, State.LOSING} for one in found) else 0)


def read_statuses(settings: Settings, name: str, topics: Sequence[str] = (), *, now_ms: int) -> "list[TopicStatus]":
    """How the topics of a cluster stand, by name: those that are named, else all that the settings allow."""
    from pipelines.watching.beside import statuses_of, watched

    with opened(settings, name) as (cluster, lake):
        if topics:
            chosen = {topic: cluster.topic(topic) for topic in topics}
        else:
            listing = cluster.topics()
            for skipped in listing.skipped:
                console.warning(f"passed over {skipped.path}: {skipped.reason}")
            chosen = watched(listing.found, lake.topics(name), settings.rules(name))
        return statuses_of(cluster, settings, chosen, now_ms=now_ms)
