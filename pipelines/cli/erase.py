"""`penstock erase`: take rows out of a table for ever."""

import uuid
from datetime import timedelta
from functools import partial
from pathlib import Path

import click

from pipelines.cli.options import GlobalOptions, cluster_option, confirm, only_cluster, table_of, topic_argument
from pipelines.cli.output import console
from pipelines.cli.output.log_lines import printable
from pipelines.cli.output.result import CommandResult, prints_result, result_of_topic
from resources.printed import printed


@click.command("erase")
@topic_argument
@click.option(
    "--where", metavar="CONDITION", help="Erase the rows for which this is true, such as \"email = 'a@b.example'\"."
)
@click.option(
    "--file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file with a value per line."
)
@click.option("--column", help="With --file: the column that has one of the values.")
@click.option("--also-raw", is_flag=True, help="Search for the values in undecoded bytes, keys and headers, too.")
@click.option("--dry-run", is_flag=True, help="Only count the rows, and change nothing.")
@click.option("--finish", is_flag=True, help="Delete the files from before earlier erasures and rewrites now.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@cluster_option
@prints_result
def erase_command(
    options: GlobalOptions,
    topic: str,
    where: str | None,
    file: Path | None,
    column: str | None,
    also_raw: bool,
    dry_run: bool,
    finish: bool,
    yes: bool,
    cluster: str | None,
) -> CommandResult:
    """Erase rows of the table of TOPIC for ever.

    Only the files with such rows are written again, in one commit, and `verify` proves that nothing else went. No later
    load, replay or rewind brings the rows back. Increments and state tables take them out, too.

    A condition compares columns with values: =, <>, <, <=, >, >=, in (...), is null, and, or, not. The field b of a
    column a is a.b, and header('name') is a header. Values are never printed and never stored.

    The former files stay in the folder of the table until `penstock clean --delete` deletes them, after
    housekeeping.erase_days. With --finish they are deleted now, and so are those from before `penstock rewrite`. Kafka
    has the records until it deletes them itself.

    \b
    Examples:
      penstock erase customers --where "email = 'zelda@example.org'" --dry-run
      penstock erase customers --file ids.txt --column id --also-raw --yes
      penstock erase customers --finish
    """
    from pipelines.cli.output.progress import progress
    from pipelines.layout.conditions import one_of, parse_condition
    from pipelines.maintenance.erase import EraseRequest, erase

    if finish:
        if where or file:
            raise click.UsageError("--finish takes no condition: it deletes files of earlier erasures")
        return _finished(options, topic, cluster, dry_run=dry_run)
    if (where is None) == (file is None) or (file is None) != (column is None):
        raise click.UsageError("say which rows: --where CONDITION, or --file FILE with --column NAME")
    if where is not None:
        condition = parse_condition(where)
    else:
        assert file is not None
        condition = one_of(str(column), [line for line in file.read_text(encoding="utf-8").splitlines() if line])
    settings = options.settings()
    name = only_cluster(settings, cluster)
    if not dry_run:
        confirm(f"Erase the rows of {printable(topic)} for ever?", yes=yes)
    with progress() as on_progress:
        request = EraseRequest(
            table=table_of(settings, name, topic),
            condition=condition,
            also_raw=also_raw,
            run=uuid.uuid4().hex,
            dry_run=dry_run,
            on_progress=on_progress(topic),
        )
        result = erase(request)
    return result_of_topic(name, result, console.erasures)


def _finished(options: GlobalOptions, topic: str, cluster: str | None, *, dry_run: bool) -> CommandResult:
    """Delete the files that still have erased rows now."""
    from pipelines.maintenance.erased_files import finish_erasures

    settings = options.settings()
    name = only_cluster(settings, cluster)
    parts = finish_erasures(table_of(settings, name, topic), older_than=timedelta(), dry_run=dry_run)
    records = [{"cluster": name, "topic": topic, **printed(part)} for part in parts]
    return CommandResult(records=records, show=partial(console.erased_files, topic, deleted=not dry_run))
