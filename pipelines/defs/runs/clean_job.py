"""The job that deletes, merges and retires files of tables, as `penstock clean --delete` does."""

from datetime import timedelta

import dagster as dg

from pipelines.defs.catalog.catalog import TopicSchedule, job_of
from pipelines.defs.runs.run_tags import tagged_run
from pipelines.formats.tables import lake_table
from pipelines.ledger.table_routes import TableRoutes
from pipelines.maintenance.housekeeping import TopicHousekeeping
from pipelines.table.lake_table import LakeTable
from resources.settings.settings import Settings


def clean_job(schedule: TopicSchedule) -> dg.JobDefinition:
    """The job that cleans every table of the schedule (fault F08)."""

    @dg.op(name=schedule.op("clean"))
    def clean_schedule(context: dg.OpExecutionContext) -> None:
        """Delete files that no table of the schedule needs, and merge small files. A table that fails stops no other.

        Raises:
            dagster.Failure: a table failed.
        """
        penstock, failed = schedule.catalog.source.fresh(), dict[str, str]()
        settings, lake = penstock.settings(), penstock.lake()
        with tagged_run(context, schedule.cluster, schedule.tables):
            routes = {topic: TableRoutes.of(settings.options_of(topic).tables) for topic in schedule.tables}
            for topic in (name for own in routes for name in routes[own].table_names(own)):
                if not lake.has_table(schedule.cluster, topic):
                    continue
                try:
                    context.log.info(_cleaned(settings, lake_table(lake, schedule.cluster, topic), topic))
                except Exception as error:
                    failed[topic] = str(error)
                    context.log.exception("%s: cannot be cleaned", topic)
        if failed:
            raise dg.Failure(f"{len(failed)} tables could not be cleaned", metadata=dict(failed))

    description = "Delete files that no table of the schedule needs, and merge small files."
    return job_of(clean_schedule, schedule.named("clean"), description)


def _cleaned(settings: Settings, table: LakeTable, topic: str) -> str:
    """Clean a table and its state table. Returns a line for the log of the run."""
    done = TopicHousekeeping()
    done.run(table, settings, keep=timedelta(days=settings.housekeeping.keep_days), dry_run=False)
    results = [result for result in (done.cleaned, done.state) if result is not None]
    deleted = sum(len(result.collected) for result in results)
    merged, larger = sum(result.merged for result in results), sum(result.larger for result in results)
    of_erasures = sum(len(part.deleted) + len(part.beside) for part in done.erased)
    and_erased = f", deleted {of_erasures} files with erased rows" if of_erasures else ""
    retired = done.retired
    rows = f", retired {retired.rows} rows from before {retired.before}" if retired else ""
    kept = f", kept {retired.kept} old files that cannot be retired" if retired and retired.kept else ""
    return f"{topic}: deleted {deleted} files, merged {merged} files into {larger}{and_erased}{rows}{kept}"
