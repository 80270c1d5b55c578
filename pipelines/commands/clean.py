"""`penstock clean`."""

from collections.abc import Sequence
from datetime import timedelta

import click

from pipelines import console
from pipelines.commands.parts import (
    Options,
    all_option,
    cluster_option,
    clusters_for,
    json_option,
    lake_of,
    print_json,
    topics_argument,
)


@click.command("clean")
@topics_argument
@all_option
@cluster_option
@click.option("--delete", is_flag=True, help="Do it; without this, only say what would be collected.")
@click.option("--keep-days", type=click.FloatRange(0, min_open=True), help="Instead of the settings' keep_days.")
@json_option
@click.pass_obj
def clean_command(
    options: Options,
    topics: Sequence[str],
    every: bool,
    cluster: str | None,
    delete: bool,
    keep_days: float | None,
    as_json: bool,
) -> None:
    """Collect files that no table needs, and merge small ones.

    Collected is what no commit names (left by runs that were killed) or what was taken out of a table, if it is older
    than keep_days: longer than the longest run, and as far back as you want to rewind. With --delete small files are
    also merged into large ones, and the log gets a checkpoint. Rows, cursors and history stay as they are, and loads
    may go on meanwhile.

    \b
    Examples:
      penstock clean --all
      penstock clean clicks --delete
      penstock clean clicks --delete --keep-days 30
    """
    from pipelines.loading.table import LakeTable
    from pipelines.mending.clean import clean

    settings = options.settings()
    lake = lake_of(settings)
    keep = timedelta(days=keep_days or settings.housekeeping.keep_days)
    done = []
    for name in clusters_for(settings, topics, every, cluster):
        for topic in topics or [one for one in lake.topics(name) if settings.rules(name).allows(one)]:
            table = LakeTable.of(lake, name, topic)
            cleaned = clean(table, keep=keep, target_bytes=settings.housekeeping.file_bytes, dry_run=not delete)
            done.append((name, topic, cleaned))
    if as_json:
        print_json([{"cluster": name, "topic": topic, **cleaned.as_dict()} for name, topic, cleaned in done])
    else:
        console.cleanings([(topic, cleaned) for _, topic, cleaned in done], deleted=delete)
