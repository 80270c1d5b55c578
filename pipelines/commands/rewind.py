"""`penstock rewind`."""

import uuid
from datetime import UTC, datetime

import click

from pipelines import console
from pipelines.commands.parts import (
    Options,
    cluster_option,
    confirm,
    json_option,
    lake_of,
    only_cluster,
    print_json,
    topic_argument,
    yes_option,
)


@click.command("rewind")
@topic_argument
@click.option("--version", type=click.IntRange(0), metavar="N", help="The version to go back to, see `history`.")
@click.option("--to", "time", metavar="TIME", help="Or the newest that is not younger: 2026-01-31T12:00Z, or -2h.")
@yes_option
@cluster_option
@json_option
@click.pass_obj
def rewind_command(
    options: Options, topic: str, version: int | None, time: str | None, yes: bool, cluster: str | None, as_json: bool
) -> None:
    """Take the table of TOPIC back to an old version.

    Rows and cursors go back together, and the next load fills it again. It says what it takes back, and asks first.

    \b
    Examples:
      penstock rewind clicks --version 2
      penstock rewind clicks --to -2h --yes
    """
    from pipelines.loading.table import LakeTable
    from pipelines.mending.rewind import plan_rewind, rewind

    if (version is None) == (time is None):
        raise click.UsageError("say where to go back to: --version N or --to TIME")
    to = version if version is not None else _parsed(str(time))
    settings = options.settings()
    table = LakeTable.of(lake_of(settings), only_cluster(settings, cluster), topic)
    planned = plan_rewind(table, to, run=uuid.uuid4().hex)
    confirm(f"Take the table of {console.printable(topic)} back {planned}?", yes=yes)
    done = rewind(planned)
    if as_json:
        print_json([{**planned.as_dict(), "version": done}])
    else:
        console.rewound(planned, done)


def _parsed(text: str) -> datetime:
    """A time, as all commands take them."""
    from pipelines.points import Time, parse_point

    try:
        point = parse_point(text, now=datetime.now(UTC))
    except ValueError:
        point = None
    if not isinstance(point, Time):
        raise click.UsageError(f"{text!r} is no time: give one such as 2026-01-31T12:00Z, or -2h")
    return datetime.fromtimestamp(point.ms / 1000, UTC)
