"""`penstock state`: the tables with the newest row of each key."""

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from pipelines.cli.options import GlobalOptions, Selection, selects_topics
from pipelines.cli.output import console, log_lines
from pipelines.cli.output.result import CommandResult, Errors, prints_result
from resources.printed import printed
from resources.settings.settings import Settings

if TYPE_CHECKING:
    from pipelines.table.lake_table import LakeTable


@click.command("state")
@selects_topics
@click.option("--rebuild", is_flag=True, help="Compute all keys again from the table of the topic.")
@prints_result
def state_command(options: GlobalOptions, selection: Selection, rebuild: bool) -> CommandResult:
    """Bring state tables up to date: the newest row of each key.

    The state table of a topic has the newest row of each key. The section [topics.NAME.state] of the settings names the
    key. The command reads what is new in the table of the topic, and commits the changes together with the progress.
    With --all it updates the state tables of all topics that have such a section and a table. It needs the extra
    `duckdb`.

    \b
    Examples:
      penstock state customers
      penstock state --all --json
      penstock state customers --rebuild
    """
    from pipelines.reports.lineage_jobs import JobLineage
    from pipelines.state_tables.reported import reported_state_update

    settings = options.settings()
    records, errors, run_id = [], Errors(), uuid.uuid4().hex
    for cluster in selection.clusters(settings):
        with errors.caught(cluster=cluster):
            lineage = JobLineage.of(settings, cluster, run_id=run_id, warn=log_lines.warning)
            for topic, table in _chosen(settings, selection, cluster):
                with errors.caught(cluster=cluster, topic=topic):
                    update = reported_state_update(lineage, table, settings.options_of(topic), rebuild=rebuild)
                    records.append({"cluster": cluster, **printed(update)})
    return CommandResult(records=records, show=console.states, errors=errors.failures)


def _chosen(settings: Settings, selection: Selection, cluster: str) -> "Iterator[tuple[str, LakeTable]]":
    """The topics to update, with their tables.

    Raises:
        UsageError: a named topic has no state table in the settings.
    """
    for table in selection.tables(settings, cluster):
        topic = str(table.where.topic)
        if settings.options_of(topic).state is not None:
            yield topic, table
        elif selection.topics:
            raise click.UsageError(f"the settings have no section [topics.{topic}.state]; it names the key")
