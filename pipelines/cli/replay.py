"""`penstock replay`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from pipelines.cli.options import (
    GlobalOptions,
    cluster_option,
    only_cluster,
    partition_option,
    table_of,
    topic_argument,
    usage_errors,
)
from pipelines.cli.output import console, log_lines
from pipelines.cli.output.result import CommandResult, prints_result, result_of_topic

if TYPE_CHECKING:
    from pipelines.rewrites.replay_request import OnCompacted


@click.command("replay")
@topic_argument
@click.option("--from", "since", metavar="POINT", required=True, help="The start of the interval.")
@click.option("--to", "until", metavar="POINT", required=True, help="The end of the interval, exclusive.")
@partition_option
@click.option(
    "--on-compacted",
    type=click.Choice(["fail", "drop"]),
    default="fail",
    help="What to do with rows whose records log compaction removed: fail, or drop them from the table.",
)
@cluster_option
@prints_result
def replay_command(
    options: GlobalOptions,
    topic: str,
    since: str,
    until: str,
    partitions: Sequence[str],
    on_compacted: "OnCompacted",
    cluster: str | None,
) -> CommandResult:
    """Fetch an interval of TOPIC again and replace its rows.

    A POINT is an offset of one partition, a time (ISO 8601, UTC if it has no zone), a duration before now (-15m, -2h,
    -1d), earliest (where the table begins) or latest (where the table ends). Times are compared with record
    timestamps; brokers before 0.10 only know when a segment of the log was written.

    One commit replaces the rows of the interval. If all rows are equal, nothing is committed. The table must cover the
    interval, and the brokers must still hold all of it. Loads of the topic can run at the same time.

    \b
    Examples:
      penstock replay clicks --from 2026-01-31T12:00Z --to 2026-01-31T13:00Z
      penstock replay clicks --partition 3 --from 1200 --to 1300
    """
    from pipelines.cli.output.progress import progress
    from pipelines.load.load import Loader
    from pipelines.reports.lineage_jobs import JobLineage
    from pipelines.rewrites.replay_request import ReplayRequest
    from pipelines.rewrites.reported import reported_replay
    from resources.kafka import open_cluster
    from resources.machines.spark import for_fetches, open_session

    with usage_errors():
        request = ReplayRequest.parse(topic, since, until, partitions, on_compacted=on_compacted, now=datetime.now(UTC))
    settings = options.settings()
    name = only_cluster(settings, cluster)
    table = table_of(settings, name, topic)
    with open_cluster(settings, name) as connected, progress() as on_progress:
        run = Loader.of(settings, connected, lambda: open_session(for_fetches(settings.spark))).run
        lineage = JobLineage.of(settings, name, run_id=run.id, warn=log_lines.warning)
        result = reported_replay(lineage, run, table, request, on_progress(topic))
    return result_of_topic(name, result, console.replays)
