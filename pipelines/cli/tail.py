"""`penstock tail`."""

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from pipelines.cli import console
from pipelines.cli.options import (
    GlobalOptions,
    cluster_option,
    only_cluster,
    partition_option,
    topic_argument,
    usage_errors,
)
from pipelines.cli.result import json_option


@click.command("tail")
@topic_argument
@click.option("--from", "since", metavar="POINT", default="latest", help="Where to begin.")
@click.option("--until", metavar="POINT", help="Where to end. Without it, the command waits for new records.")
@partition_option
@click.option("--max", "max_records", type=click.IntRange(1), metavar="N", help="End after this many records.")
@cluster_option
@json_option
@click.pass_obj
def tail_command(
    options: GlobalOptions,
    topic: str,
    since: str,
    until: str | None,
    partitions: Sequence[str],
    max_records: int | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Show records of TOPIC, read from the brokers.

    Each line is a record: partition, offset, time, key, value and headers.

    A POINT is earliest, latest, committed (the cursor of the topic's table; not for --until), an offset of one
    partition, a time (ISO 8601, UTC if it has no zone) or a duration before now: -15m, -2h, -1d. Times are compared
    with record timestamps; brokers before 0.10 only know when a segment of the log was written, so older records may
    appear, and the output may end too early.

    With --json each line is a JSON object. Bytes that are not UTF-8 become {"base64": ...}. Without --until, end the
    command with Ctrl-C; the exit code is 0.

    \b
    Examples:
      penstock tail clicks
      penstock tail clicks --from -15m --until latest --json
      penstock tail clicks --partition 3 --from 1200 --max 1
    """
    from pipelines.cli import tail_lines as lines
    from pipelines.tail.follow import open_tail
    from pipelines.tail.query import TailQuery, TailRefused

    with usage_errors():
        query = TailQuery.parse(topic, since, until, partitions, now=datetime.now(UTC))
    settings = options.settings()
    render = lines.as_json if as_json else lines.as_line
    try:
        with open_tail(settings, only_cluster(settings, cluster), query, on_warning=console.warning) as tail:
            for rows in lines.first_rows(lines.rows_of(tail.batches()), max_records):
                lines.write(map(render, rows))
    except TailRefused as error:
        raise click.UsageError(error.reason) from None
    except KeyboardInterrupt:
        return
