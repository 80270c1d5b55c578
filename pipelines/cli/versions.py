"""`penstock history` and `penstock rewind`: the versions of a table."""

import uuid
from functools import partial
from itertools import islice

import click

from pipelines.cli.options import (
    GlobalOptions,
    cluster_option,
    confirm,
    only_cluster,
    parse_time,
    table_of,
    topic_argument,
)
from pipelines.cli.output import console
from pipelines.cli.output.log_lines import printable
from pipelines.cli.output.result import CommandResult, prints_result
from resources.printed import printed

_DEFAULT_LIMIT = 20
_MAX_LIMIT = 1_000_000


@click.command("history")
@topic_argument
@click.option("--limit", type=click.IntRange(1, _MAX_LIMIT), default=_DEFAULT_LIMIT, help="Maximum number of commits.")
@cluster_option
@prints_result
def history_command(options: GlobalOptions, topic: str, limit: int, cluster: str | None) -> CommandResult:
    """Show the commits of the table of TOPIC, newest first.

    Each line is a commit: a load, a replay, a rewind, or a change by another program.

    \b
    Examples:
      penstock history clicks
      penstock history clicks --limit 1 --json
    """
    from pipelines.maintenance.history import history

    settings = options.settings()
    entries = list(islice(history(table_of(settings, only_cluster(settings, cluster), topic)), limit))
    return CommandResult(records=printed(entries), show=lambda _: console.history(entries))


@click.command("rewind")
@topic_argument
@click.option("--version", type=click.IntRange(0), metavar="N", help="The version to go back to; see `history`.")
@click.option(
    "--to",
    "time",
    metavar="TIME",
    help="Go back to the newest version at or before this time: 2026-01-31T12:00Z, or -2h.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@cluster_option
@prints_result
def rewind_command(
    options: GlobalOptions, topic: str, version: int | None, time: str | None, yes: bool, cluster: str | None
) -> CommandResult:
    """Restore an old version of the table of TOPIC.

    Rows and cursors go back together; the next load continues at the restored cursors. The command shows what changes
    and asks before it changes the table.

    \b
    Examples:
      penstock rewind clicks --version 2
      penstock rewind clicks --to -2h --yes
    """
    from pipelines.maintenance.rewind import plan_rewind, rewind

    if (version is None) == (time is None):
        raise click.UsageError("give the version to go back to: --version N or --to TIME")
    target = version if version is not None else parse_time(str(time))
    settings = options.settings()
    plan = plan_rewind(table_of(settings, only_cluster(settings, cluster), topic), target, run=uuid.uuid4().hex)
    confirm(f"Take the table of {printable(topic)} back {plan}?", yes=yes)
    new_version = rewind(plan)
    sentence = f"version {new_version}: {topic} went back {plan}"
    records = [{**printed(plan), "version": new_version}]
    return CommandResult(records=records, show=partial(console.rewound, sentence=sentence))
