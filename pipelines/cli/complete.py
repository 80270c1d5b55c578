"""`penstock complete`: whether a table has all rows up to a time."""

import click

from pipelines.cli.options import (
    FiniteRange,
    GlobalOptions,
    cluster_option,
    only_cluster,
    parse_time,
    table_of,
    topic_argument,
)
from pipelines.cli.output.result import CommandResult, prints_result
from pipelines.cli.output.shown_status import completeness as show_completeness
from resources.explanations.explanation import ExitCode
from resources.printed import printed

_MAX_WAIT_S = 7 * 86_400.0


@click.command("complete")
@topic_argument
@click.option(
    "--through", metavar="TIME", required=True, help="The time: 2026-01-31T12:00Z, or -2h. UTC if it has no zone."
)
@click.option("--wait", "wait_s", type=FiniteRange(0, _MAX_WAIT_S), default=0, help="Seconds to wait until it is.")
@click.option(
    "--hours",
    type=click.IntRange(1, 31 * 24),
    help="Compare this many hours with the counts of producers. [default: audit_hours]",
)
@cluster_option
@prints_result
def complete_command(
    options: GlobalOptions, topic: str, through: str, wait_s: float, hours: int | None, cluster: str | None
) -> CommandResult:
    """Say whether the table of TOPIC is complete through a time.

    A table is complete through a time if it has all rows with an earlier event time, except those that arrive later
    than the allowed lateness. The command reads only the table: loads record in each commit what is proven. The topic
    needs the setting `event_time`. Exit code 0: it is complete; 1: it is not, or its table records no event time.

    If the topic has the setting `audit`, the last hours before the time are also compared with what producers counted,
    and hours with too few rows are printed. This needs the extra `duckdb`.

    \b
    Examples:
      penstock complete clicks --through 2026-01-31T12:00Z
      penstock complete clicks --through -1h --wait 600
      penstock complete clicks --through -1h --json
    """
    from pipelines.status.audited_hours import Audit
    from pipelines.status.completeness import wait_until_complete

    settings, through_ms = options.settings(), round(parse_time(through).timestamp() * 1000)
    name = only_cluster(settings, cluster)
    table, audit = table_of(settings, name, topic), Audit.of(settings, name, topic, hours=hours)
    if hours is not None and audit is None:
        raise click.UsageError(f"--hours needs the setting `audit` of the topic {topic!r}")
    completeness = wait_until_complete(table, through_ms, wait_s, audit=audit)
    result = completeness.result(through_ms)
    ends = () if result.complete else (ExitCode.FAILED,)
    return CommandResult(records=[printed(result)], show=show_completeness, ends=ends)
