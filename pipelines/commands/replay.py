"""`penstock replay`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from pipelines import console
from pipelines.commands.parts import (
    FAILED,
    cluster_option,
    json_option,
    only_cluster,
    opened,
    partition_option,
    print_json,
    topic_argument,
)

if TYPE_CHECKING:
    from pipelines.mending.asked import OnCompacted


@click.command("replay")
@topic_argument
@click.option("--from", "since", metavar="POINT", required=True, help="Where to begin.")
@click.option("--to", "until", metavar="POINT", required=True, help="Where to end.")
@partition_option
@click.option(
    "--on-compacted",
    type=click.Choice(["fail", "drop"]),
    default="fail",
    show_default=True,
    help="What becomes of rows that the log no longer has, as it was compacted.",
)
@cluster_option
@json_option
@click.pass_context
def replay_command(
    ctx: click.Context,
    topic: str,
    since: str,
    until: str,
    partitions: Sequence[str],
    on_compacted: "OnCompacted",
    cluster: str | None,
    as_json: bool,
) -> None:
    """Fetch an interval of TOPIC again, and replace its rows.

    A POINT is an offset of one partition, a time (ISO 8601, UTC if it has no zone), a time ago (-15m, -2h, -1d),
    earliest (where the table begins) or latest (where it ends). Times are those of the records; brokers before 0.10
    know only when a segment of their log was written.

    The rows take the place of those that the table has, in one commit, or none where they are the same. The table must
    cover the interval, and the brokers must hold it all. Loads of the topic may go on meanwhile.

    \b
    Examples:
      penstock replay clicks --from 2026-01-31T12:00Z --to 2026-01-31T13:00Z
      penstock replay clicks --partition 3 --from 1200 --to 1300
    """
    from pipelines.loading.load import Loader
    from pipelines.loading.table import LakeTable
    from pipelines.mending.asked import Asked
    from pipelines.mending.replay import replay
    from resources.spark import open_session

    try:
        asked = Asked.parse(topic, since, until, partitions, on_compacted=on_compacted, now=datetime.now(UTC))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    settings = ctx.obj.settings()
    name = only_cluster(settings, cluster)
    with opened(settings, name) as (connected, lake), console.progress() as on_progress:
        loader = Loader.of(settings, connected, lambda: open_session(settings.spark), on_progress=on_progress)
        done = replay(loader, LakeTable.of(lake, name, topic), asked)
    if as_json:
        print_json([{"cluster": name, **done.as_dict()}])
    else:
        console.replays([done])
    if done.trace and ctx.obj.debug:
        click.echo(done.trace, err=True)
    ctx.exit(FAILED if done.error else 0)
