"""`penstock clean`."""

from datetime import timedelta
from functools import partial

import click

from pipelines.cli import console
from pipelines.cli.options import CommandResult, GlobalOptions, Selection, prints_result, selects_topics


@click.command("clean")
@selects_topics
@click.option(
    "--delete", is_flag=True, help="Delete and merge files. Without it, only show which files would be deleted."
)
@click.option(
    "--keep-days", type=click.FloatRange(0, min_open=True), help="Overrides housekeeping.keep_days of the settings."
)
@prints_result
@click.pass_obj
def clean_command(options: GlobalOptions, selection: Selection, delete: bool, keep_days: float | None) -> CommandResult:
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
    from pipelines.maintenance.clean import clean

    settings = options.settings()
    keep = timedelta(days=keep_days or settings.housekeeping.keep_days)
    records = []
    for cluster in selection.clusters(settings):
        for table in selection.tables(settings, cluster):
            cleaned = clean(table, keep=keep, target_bytes=settings.housekeeping.file_bytes, dry_run=not delete)
            records.append({"cluster": cluster, "topic": table.where.topic, **cleaned.as_dict()})
    return CommandResult(records=records, show=partial(console.cleanings, deleted=delete))
