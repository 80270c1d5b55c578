"""`penstock offsets`: cursors for other tools, and tables that begin where another loader ended."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

import click

from pipelines import console
from pipelines.commands.parts import (
    Options,
    all_option,
    cluster_option,
    clusters_for,
    json_option,
    lake_of,
    only_cluster,
    opened,
    print_json,
    topics_argument,
)
from resources.choices import Choices
from resources.settings import Settings

if TYPE_CHECKING:
    from pipelines.offsets.portable import Cursor

_ON_EXPIRED = Choices.model_fields["on_expired"]


@click.group("offsets")
def offsets_group() -> None:
    """Hand cursors to other tools, and adopt those of other loaders.

    \b
    Examples:
      penstock offsets export clicks
      penstock offsets import orders --from group:old-loader --dry-run
    """


@offsets_group.command("export")
@topics_argument
@all_option
@click.option("--write", is_flag=True, help="Commit them as the offsets of a group.")
@click.option("--group", metavar="NAME", help="Which group; the settings' mirror_group by default.")
@click.option(
    "--storage",
    type=click.Choice(["zookeeper", "coordinator"]),
    help="Where the group's are kept; by default where tools of the cluster's generation look.",
)
@click.option(
    "--csv", "as_csv", is_flag=True, help="Print lines of topic,partition,offset, as Kafka's tools take them."
)
@cluster_option
@json_option
@click.pass_obj
def export_command(
    options: Options,
    topics: Sequence[str],
    every: bool,
    write: bool,
    group: str | None,
    storage: str | None,
    as_csv: bool,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Show the cursors of tables, or tell a group of them.

    A cursor is the next offset that is to be loaded of a partition; of 0.7, a byte of its log. A group that has members
    takes offsets only from them.

    The lines of --csv are those that `kafka-consumer-groups --reset-offsets --from-file` reads.

    \b
    Examples:
      penstock offsets export clicks
      penstock offsets export --all --csv
      penstock offsets export clicks --write --group lag-watch
    """
    from pipelines.offsets.portable import to_csv

    if as_csv and as_json:
        raise click.UsageError("give --csv or --json, not both")
    if not write and (group or storage):
        raise click.UsageError("--group and --storage say where to --write")
    settings = options.settings()
    found = []
    for name in clusters_for(settings, topics, every, cluster):
        mine = _cursors(settings, name, topics)
        if write:
            _write(settings, name, group, storage, mine)
        found += mine
    if as_json:
        print_json([one.as_dict() for one in found])
    elif as_csv:
        click.echo(to_csv(found), nl=False)
    else:
        console.cursors(found)


def _cursors(settings: Settings, cluster: str, topics: Sequence[str]) -> "list[Cursor]":
    from pipelines.loading.table import LakeTable
    from pipelines.offsets.exporting import cursors_of

    lake = lake_of(settings)
    names = topics or sorted(lake.topics(cluster))
    return [one for topic in names for one in cursors_of(LakeTable.of(lake, cluster, topic), cluster, topic)]


def _write(
    settings: Settings, cluster: str, group: str | None, storage: str | None, cursors: "Sequence[Cursor]"
) -> None:
    from kafka_io.client.offsets import Storage
    from pipelines.offsets.exporting import write_cursors

    name = group or settings.clusters[cluster].mirror_group
    if name is None:
        raise click.UsageError(f"say which group with --group, or set clusters.{cluster}.mirror_group")
    with opened(settings, cluster) as (connected, _):
        write_cursors(connected, name, cursors, Storage(storage) if storage else None)


@offsets_group.command("import")
@topics_argument
@click.option("--from", "source", metavar="SOURCE", required=True, help="Whose offsets, see above.")
@click.option(
    "--missing",
    type=click.Choice(["fail", "earliest"]),
    default="fail",
    show_default=True,
    help="What to do about partitions that hold something and that SOURCE has no offset of: load them as a whole?",
)
@click.option("--on-expired", type=click.Choice(get_args(_ON_EXPIRED.annotation)), help=_ON_EXPIRED.description)
@click.option("--dry-run", is_flag=True, help="Only show where the tables would begin.")
@cluster_option
@json_option
@click.pass_obj
def import_command(
    options: Options,
    topics: Sequence[str],
    source: str,
    missing: Literal["fail", "earliest"],
    on_expired: str | None,
    dry_run: bool,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Have tables begin where another loader ended.

    Only tables that were never loaded can. The first load starts exactly there: stop the other loader first. If one of
    the topics is refused, none is adopted.

    \b
    SOURCE is one of these; paths are of this machine:
      group:NAME      a group whose coordinator keeps its offsets
      zookeeper:NAME  a group of 0.7 to 0.9 that keeps them in ZooKeeper
      hadoop:PATH     the offsets_* files of the Hadoop consumer's last job, or one of them
      camus:PATH      Camus's execution history, or one run of it
      spark:PATH      the checkpoint of a Spark streaming query
      file:PATH       what `penstock offsets export` printed with --json or --csv

    \b
    Examples:
      penstock offsets import orders --from group:old-loader --dry-run
      penstock offsets import orders --from group:old-loader
      penstock offsets import orders --from spark:checkpoint --missing earliest
    """
    from pipelines.loading.load import Loader
    from pipelines.loading.table import LakeTable
    from pipelines.offsets.adopting import adopt, plan_adoption
    from pipelines.offsets.sources import parse_source
    from resources.spark import open_session

    try:
        source_of = parse_source(source)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if not topics:
        raise click.UsageError("name topics")
    settings = options.settings()
    name = only_cluster(settings, cluster)
    choices = settings.choices_of(name).but({"on_expired": on_expired})
    with opened(settings, name) as (connected, lake):
        loader = Loader.of(settings, connected, lambda: open_session(settings.spark), choices=choices)
        ask = source_of(connected)
        tables = [LakeTable.of(lake, name, topic) for topic in topics]
        planned = [
            plan_adoption(loader, table, topic, ask(topic), source=source, missing=missing)
            for topic, table in zip(topics, tables, strict=True)
        ]
        versions = [None if dry_run else adopt(*each) for each in zip(tables, planned, strict=True)]
    if as_json:
        print_json([{**one.as_dict(), "version": at} for one, at in zip(planned, versions, strict=True)])
    else:
        console.adoptions(planned)
