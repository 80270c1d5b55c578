"""Updates of state tables that are reported as OpenLineage events if the settings ask for it."""

from pipelines.reports.lineage_events import DatasetName
from pipelines.reports.lineage_jobs import JobLineage
from pipelines.state_tables.update import StateUpdate, update_state
from pipelines.table.lake_table import LakeTable
from resources.settings.topic_options import TopicOptions


def reported_state_update(
    lineage: JobLineage, table: LakeTable, topic: TopicOptions, *, rebuild: bool = False
) -> StateUpdate:
    """Bring a state table up to date; see `update_state`. The job leads from the topic's table to the state table."""
    with lineage.job("STATE", table.where.topic or "", DatasetName.of_table(table.uri)) as report:
        update = update_state(table, topic, rebuild=rebuild)
        if report is not None and update.version >= 0:
            report.read(update.version)
            report.wrote_table(update.table, rows=update.changed)
    return update
