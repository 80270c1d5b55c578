"""`penstock schema`."""

from functools import cache, partial

import click

from pipelines.cli import console
from pipelines.cli.options import GlobalOptions, cluster_option, only_cluster, topic_argument
from pipelines.cli.result import CommandResult, prints_result


@click.command("schema")
@topic_argument
@cluster_option
@prints_result
@click.pass_obj
def schema_command(options: GlobalOptions, topic: str, cluster: str | None) -> CommandResult:
    """Show the schemas of TOPIC and the columns of its table.

    Each line is a column for a field of the values: its name, its type, the field that fills it, and whether the next
    load adds it. A raw table has no such columns. If the schemas of the values are in a registry, the first lines are
    the schemas that the table has met, and the newest one of the subject TOPIC-value, whose columns are shown too.

    \b
    Examples:
      penstock schema clicks
      penstock schema clicks --json
    """
    from pipelines.loading.table import LakeTable
    from pipelines.maintenance.topic_schema import topic_schema
    from resources.kafka import open_schema_registry
    from resources.lake import Lake

    settings = options.settings()
    table = LakeTable.of(Lake.of(settings), only_cluster(settings, cluster), topic)
    shown = topic_schema(table, settings.format_of(topic), cache(partial(open_schema_registry, settings)))
    return CommandResult(records=[shown.as_dict()], show=console.schemas)
