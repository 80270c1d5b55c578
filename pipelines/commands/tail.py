"""`penstock tail`."""

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from pipelines import console
from pipelines.commands.parts import (
    Options,
    cluster_option,
    json_option,
    only_cluster,
    partition_option,
    topic_argument,
)


@click.command("tail")
@topic_argument
@click.option("--from", "since", metavar="POINT", default="latest", show_default=True, help="Where to begin.")
@click.option("--until", metavar="POINT", help="Where to end; without it, go on with what comes.")
@partition_option
@click.option("--max", "most", type=click.IntRange(1), metavar="N", help="End after so many records.")
@cluster_option
@json_option
@click.pass_obj
def tail_command(
    options: Options,
    topic: str,
    since: str,
    until: str | None,
    partitions: Sequence[str],
    most: int | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Show records of TOPIC straight from the brokers.

    Each is a line: partition, offset, time, key, value and headers.

    A POINT is earliest, latest, committed (where the lake's table goes on; not for an end), an offset of one
    partition, a time (ISO 8601, UTC if it has no zone) or a time ago: -15m, -2h, -1d. Times are those of the records;
    brokers before 0.10 know only when a segment of their log was written: older records may come, and it may end early.

    With --json each record is an object on a line. Bytes that are not UTF-8 are {"base64": ...}. Ctrl-C is how a tail
    without end is ended: exit code 0.

    \b
    Examples:
      penstock tail clicks
      penstock tail clicks --from -15m --until latest --json
      penstock tail clicks --partition 3 --from 1200 --max 1
    """
    from pipelines.tailing import lines
    from pipelines.tailing.opening import open_tail
    from pipelines.tailing.points import TailRefused
    from pipelines.tailing.query import Query

    try:
        query = Query.parse(topic, since, until, partitions, now=datetime.now(UTC))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    settings = options.settings()
    shown = lines.as_json if as_json else lines.as_line
    try:
        with open_tail(settings, only_cluster(settings, cluster), query, on_trouble=console.warning) as tail:
            for rows in lines.first_rows(lines.rows_of(tail.batches()), most):
                lines.write(map(shown, rows))
    except TailRefused as error:
        raise click.UsageError(error.reason) from None
    except KeyboardInterrupt:
        return
