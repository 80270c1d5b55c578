"""`penstock schema`, `redecode` and `rewrite`: the columns of tables, records that do not decode, and other rules."""

import uuid
from functools import cache, partial

import click

from pipelines.cli.options import GlobalOptions, cluster_option, only_cluster, table_of, topic_argument
from pipelines.cli.output import console, log_lines
from pipelines.cli.output.result import CommandResult, prints_result, result_of_topic
from resources.printed import printed


@click.command("schema")
@topic_argument
@cluster_option
@prints_result
def schema_command(options: GlobalOptions, topic: str, cluster: str | None) -> CommandResult:
    """Show the schemas of TOPIC and the columns of its table.

    Each line is a column for a field of the values: its name, its type, the field that fills it, and whether the next
    load adds it. A raw table has no such columns. If the schemas of the values are in a registry, the first lines are
    the schemas that the table has met, and the newest one of the subject TOPIC-value, whose columns are shown too. If
    the topic has several tables, that one is not shown, because any of them may get its records.

    \b
    Examples:
      penstock schema clicks
      penstock schema clicks --json
    """
    from pipelines.formats.tables import lake_table
    from pipelines.rewrites.topic_schema import topic_schema
    from resources.kafka import open_schema_registry
    from resources.stores.lake import Lake

    settings = options.settings()
    name, format_ = only_cluster(settings, cluster), settings.format_of(topic)
    # The columns of a typed table are known before there is one.
    table = lake_table(Lake.of(settings), name, topic) if format_.is_typed else table_of(settings, name, topic)
    schema = topic_schema(table, format_, cache(partial(open_schema_registry, settings)))
    return CommandResult(records=[printed(schema)], show=console.schemas)


@click.command("redecode")
@topic_argument
@click.option("--all", "every", is_flag=True, help="Decode all records of a raw table, which becomes a typed table.")
@click.option("--dry-run", is_flag=True, help="Only show what would be decoded, and change nothing.")
@cluster_option
@prints_result
def redecode_command(
    options: GlobalOptions, topic: str, every: bool, dry_run: bool, cluster: str | None
) -> CommandResult:
    """Decode the bad records of the table of TOPIC again.

    A bad record is one that did not decode; a typed table keeps its bytes. After you have corrected the format in the
    settings, or the schema in the registry, this command decodes these bytes, without a broker. Offsets and all other
    rows stay the same. It shows how many records decode now, and why others do not.

    With --all it decodes all records of a raw table, after you have set a format for the topic. One commit replaces the
    raw rows and columns by the typed ones. If more records do not decode than the limits of the format allow, nothing
    is changed.

    Loads of the topic can run at the same time. After an interruption, run the command again: it continues.

    \b
    Examples:
      penstock redecode refunds --dry-run
      penstock redecode refunds
      penstock redecode visits --all
    """
    from pipelines.cli.output.progress import progress
    from pipelines.reports.lineage_jobs import JobLineage
    from pipelines.rewrites.redecode import RedecodeRequest
    from pipelines.rewrites.reported import reported_redecode
    from resources.kafka import open_schema_registry

    settings = options.settings()
    name = only_cluster(settings, cluster)
    with progress() as on_progress:
        request = RedecodeRequest(
            table=table_of(settings, name, topic),
            format=settings.format_of(topic),
            open_registry=cache(partial(open_schema_registry, settings)),
            run=uuid.uuid4().hex,
            dry_run=dry_run,
            on_progress=on_progress(topic),
        )
        lineage = JobLineage.of(settings, name, run_id=request.run, warn=log_lines.warning)
        result = reported_redecode(lineage, request, every=every)
    return result_of_topic(name, result, console.redecodes)


@click.command("rewrite")
@topic_argument
@click.option("--dry-run", is_flag=True, help="Only show what would change, and change nothing.")
@cluster_option
@prints_result
def rewrite_command(options: GlobalOptions, topic: str, dry_run: bool, cluster: str | None) -> CommandResult:
    """Store the rows of TOPIC again by its present rules.

    The rules in [topics.NAME.load] say what is stored of records, and apply to new rows. This command applies them to
    the rows that a table has already: it drops, masks and hashes their values, in one commit, without a broker.
    Offsets and the number of rows stay the same. It cannot bring back what a table does not have: a hash cannot become
    a value, or the hash of another key.

    The old files stay until `penstock clean --delete` deletes them, after housekeeping.erase_days; `penstock erase
    TOPIC --finish` deletes them now. Loads of the topic can run at the same time if they have the former rules. After
    an interruption, run the command again: it continues.

    \b
    Examples:
      penstock rewrite customers --dry-run
      penstock rewrite customers
    """
    from pipelines.cli.output.progress import progress
    from pipelines.reports.lineage_jobs import JobLineage
    from pipelines.rewrites.reported import reported_rewrite
    from pipelines.rewrites.rewrite import RewriteRequest

    settings = options.settings()
    name = only_cluster(settings, cluster)
    with progress() as on_progress:
        request = RewriteRequest(
            table=table_of(settings, name, topic),
            format=settings.format_of(topic),
            run=uuid.uuid4().hex,
            dry_run=dry_run,
            on_progress=on_progress(topic),
        )
        lineage = JobLineage.of(settings, name, run_id=request.run, warn=log_lines.warning)
        result = reported_rewrite(lineage, request)
    return result_of_topic(name, result, console.rewrites)
