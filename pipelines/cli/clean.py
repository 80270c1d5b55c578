"""`penstock clean`."""

from collections.abc import Sequence
from datetime import timedelta

import click

from pipelines.cli import console
from pipelines.cli.options import (
    GlobalOptions,
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
@click.option(
    "--delete", is_flag=True, help="Delete and merge files. Without it, only show which files would be deleted."
)
@click.option(
    "--keep-days", type=click.FloatRange(0, min_open=True), help="Overrides housekeeping.keep_days of the settings."
)
@json_option
@click.pass_obj
def clean_command(
    options: GlobalOptions,
    topics: Sequence[str],
    every: bool,
    cluster: str | None,
    delete: bool,
    keep_days: float | None,
    as_json: bool,
) -> None:
    """Delete files that no table needs, and merge small files.

    The command deletes files that no commit names (left by killed runs) and files that were removed from a table, if
    they are older than keep_days. Choose more days than the longest run takes, and as many as you may want to rewind.
    With --delete it also merges small files into large ones and writes a checkpoint of the table's log. Rows, cursors
    and history do not change. Loads can run at the same time.

    \b
    Examples:
      penstock clean --all
      penstock clean clicks --delete
      penstock clean clicks --delete --keep-days 30
    """
    from pipelines.loading.table import LakeTable
    from pipelines.maintenance.clean import clean

    settings = options.settings()
    lake = lake_of(settings)
    keep = timedelta(days=keep_days or settings.housekeeping.keep_days)
    results = []
    for name in clusters_for(settings, topics, every, cluster):
        for topic in topics or [topic for topic in lake.topics(name) if settings.rules(name).allows(topic)]:
            table = LakeTable.of(lake, name, topic)
            cleaned = clean(table, keep=keep, target_bytes=settings.housekeeping.file_bytes, dry_run=not delete)
            results.append((name, topic, cleaned))
    if as_json:
        print_json([{"cluster": name, "topic": topic, **cleaned.as_dict()} for name, topic, cleaned in results])
    else:
        console.cleanings([(topic, cleaned) for _, topic, cleaned in results], deleted=delete)
