"""`penstock offsets`: export cursors to other tools, and start tables at the offsets of another loader."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import click

from pipelines.cli.options import (
    GlobalOptions,
    Selection,
    check_topics,
    choice_option,
    cluster_option,
    only_cluster,
    selects_topics,
    topics_argument,
    usage_errors,
)
from pipelines.cli.output import console
from pipelines.cli.output.result import CommandResult, Errors, prints_result, wants_json
from resources.printed import printed
from resources.settings.settings import Settings

if TYPE_CHECKING:
    from pipelines.cursors.export import ExportedCursor


@click.group("offsets")
def offsets_group() -> None:
    """Export cursors, and import the offsets of other loaders.

    \b
    Examples:
      penstock offsets export clicks
      penstock offsets import orders --from group:old-loader --dry-run
    """


@offsets_group.command("export")
@selects_topics
@click.option("--write", is_flag=True, help="Commit the cursors as the offsets of a consumer group.")
@click.option("--group", metavar="NAME", help="The group for --write. By default mirror_group of the settings.")
@click.option(
    "--storage",
    type=click.Choice(["zookeeper", "coordinator"]),
    help="Where the group's offsets are stored. By default where tools of the cluster's generation look for them.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print lines of topic,partition,offset for Kafka's own tools.")
@prints_result
def export_command(
    options: GlobalOptions,
    selection: Selection,
    write: bool,
    group: str | None,
    storage: str | None,
    as_csv: bool,
) -> CommandResult:
    """Show the cursors of tables, or commit them to a group.

    A cursor is the next offset of a partition that will be loaded (in Kafka 0.7, a byte of the log). A group with
    members accepts offsets only from its members, so --write needs a group without members.

    `kafka-consumer-groups --reset-offsets --from-file` reads the lines of --csv.

    \b
    Examples:
      penstock offsets export clicks
      penstock offsets export --all --csv
      penstock offsets export clicks --write --group lag-watch
    """
    from pipelines.cursors.export import cursors_of, to_csv

    if as_csv and wants_json(click.get_current_context()):
        raise click.UsageError("give --csv or --json, not both")
    if not write and (group or storage):
        raise click.UsageError("--group and --storage need --write")
    settings = options.settings()
    cursors, errors = [], Errors()
    for name in selection.clusters(settings):
        of_cluster: list[ExportedCursor] = []
        with errors.caught(cluster=name):
            for table in selection.tables(settings, name):
                with errors.caught(cluster=name, topic=table.where.topic):
                    of_cluster += cursors_of(table, name, table.where.topic or "")
            if write:
                _write(settings, name, group, storage, of_cluster)
        cursors += of_cluster
    return CommandResult(
        records=printed(cursors),
        show=(lambda _: click.echo(to_csv(cursors), nl=False)) if as_csv else console.cursors,
        errors=errors.failures,
    )


def _write(
    settings: Settings, cluster: str, group: str | None, storage: str | None, cursors: "Sequence[ExportedCursor]"
) -> None:
    from kafka_io.consumer.group_offsets import OffsetStorage
    from pipelines.cursors.export import write_cursors
    from resources.kafka import open_cluster

    name = group or settings.clusters[cluster].mirror_group
    if name is None:
        raise click.UsageError(f"give the group with --group, or set clusters.{cluster}.mirror_group")
    with open_cluster(settings, cluster) as connected:
        write_cursors(connected, name, cursors, OffsetStorage(storage) if storage else None)


@offsets_group.command("import")
@topics_argument
@click.option("--from", "source", metavar="SOURCE", required=True, help="The offsets of the other loader; see above.")
@click.option(
    "--missing",
    type=click.Choice(["fail", "earliest"]),
    default="fail",
    help="What to do with partitions that have records but no offset in SOURCE: fail, or load them completely.",
)
@choice_option("on_expired")
@click.option("--dry-run", is_flag=True, help="Only show where the tables would begin.")
@cluster_option
@prints_result
def import_command(
    options: GlobalOptions,
    topics: Sequence[str],
    source: str,
    missing: Literal["fail", "earliest"],
    on_expired: str | None,
    dry_run: bool,
    cluster: str | None,
) -> CommandResult:
    """Start new tables at the offsets of another loader.

    The tables must not have been loaded yet. Stop the other loader first: the first load starts exactly at its offsets.
    If the import of one topic is refused, no topic is imported.

    \b
    SOURCE is one of these (paths are on this machine):
      group:NAME      a consumer group with offsets in Kafka
      zookeeper:NAME  a consumer group of 0.7 to 0.9 with offsets in ZooKeeper
      hadoop:PATH     the offsets_* files of the Hadoop consumer's last job, or one of them
      camus:PATH      the execution history of Camus, or one run of it
      spark:PATH      the checkpoint of a Spark streaming query
      file:PATH       the output of `penstock offsets export` with --json or --csv

    \b
    Examples:
      penstock offsets import orders --from group:old-loader --dry-run
      penstock offsets import orders --from group:old-loader
      penstock offsets import orders --from spark:checkpoint --missing earliest
    """
    from pipelines.cursors.import_offsets import import_offsets, parse_source, plan_import
    from pipelines.formats.tables import lake_table
    from pipelines.load.load import Loader
    from resources.kafka import open_cluster
    from resources.machines.spark import for_fetches, open_session
    from resources.stores.lake import Lake

    with usage_errors():
        read_offsets = parse_source(source)
    if not topics:
        raise click.UsageError("give topics")
    settings = options.settings()
    name = only_cluster(settings, cluster)
    choices = settings.choices_of(name).with_overrides({"on_expired": on_expired})
    lake = Lake.of(settings)
    with open_cluster(settings, name) as connected:
        run = Loader.of(settings, connected, lambda: open_session(for_fetches(settings.spark)), choices=choices).run
        tables = {topic: lake_table(lake, name, topic) for topic in check_topics(settings, connected, topics)}
        plans = {
            topic: plan_import(run, table, topic, read_offsets(connected, topic), source=source, missing=missing)
            for topic, table in tables.items()
        }
        versions = {topic: None if dry_run else import_offsets(table, plans[topic]) for topic, table in tables.items()}
    records = [{"cluster": name, **printed(plan), "version": versions[topic]} for topic, plan in plans.items()]
    return CommandResult(records=records, show=console.imports)
