"""`penstock tail`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from pipelines.cli.options import (
    GlobalOptions,
    cluster_option,
    only_cluster,
    partition_option,
    topic_argument,
    usage_errors,
)
from pipelines.cli.output import log_lines
from pipelines.cli.output.result import json_option
from resources.settings.settings import Settings

if TYPE_CHECKING:
    from pipelines.tail.shown_value import ShowValues


class _Records(TypedDict):
    """Which records the options choose: see `TailQuery.parse`."""

    topic: str
    since: str
    until: str | None
    partitions: Sequence[str]


@click.command("tail")
@topic_argument
@click.option("--from", "since", metavar="POINT", default="latest", help="Where to begin.")
@click.option("--until", metavar="POINT", help="Where to end. Without it, the command waits for new records.")
@partition_option
@click.option("--max", "max_records", type=click.IntRange(1), metavar="N", help="End after this many records.")
@click.option("--raw", is_flag=True, help="Show values as bytes, also if the topic has a format.")
@cluster_option
@json_option
@click.pass_obj
def tail_command(
    options: GlobalOptions,
    /,
    max_records: int | None,
    raw: bool,
    cluster: str | None,
    as_json: bool,
    **records: Unpack[_Records],
) -> None:
    """Show records of TOPIC, read from the brokers.

    Each line is a record: partition, offset, time, key, value and headers. If the topic has a format in the settings,
    its values are decoded, and shown as JSON without the fields that are null. A value that does not decode is shown as
    it is, with the reason. With --raw no value is decoded.

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
      penstock tail refunds --from earliest --until latest --json
    """
    from pipelines.cli.output import tail_lines as lines
    from pipelines.tail.follow import open_tail
    from pipelines.tail.query import TailQuery, TailRefused

    with usage_errors():
        query = TailQuery.parse(**records, now=datetime.now(UTC))
    settings = options.settings()
    decode = None if raw else _decoding(settings, query.topic)
    render = lines.as_json if as_json else lines.as_line
    try:
        with open_tail(settings, only_cluster(settings, cluster), query, on_warning=log_lines.warning) as tail:
            for rows in lines.first_rows(lines.rows_of(tail.batches(), decode), max_records):
                lines.write(map(render, rows))
    except TailRefused as error:
        raise click.UsageError(error.reason) from None
    except KeyboardInterrupt:
        return


def _decoding(settings: Settings, topic: str) -> "ShowValues | None":
    """The decoder of the topic's values; None if the topic has no format, so that values are shown as bytes."""
    format_ = settings.format_of(topic)
    if not format_.is_typed:
        return None
    from pipelines.tail.decoded import ValueDecoding
    from resources.kafka import open_schema_registry

    return ValueDecoding(format_, cache(partial(open_schema_registry, settings)))
