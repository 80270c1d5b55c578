"""The job that deletes, merges and retires files of tables, as `penstock clean --delete` does."""

from datetime import timedelta

import dagster as dg

from pipelines.defs.catalog.catalog import TopicSchedule, job_of
from pipelines.defs.runs.run_tags import tagged_run
from pipelines.delta.delta_table import LakeTable
from pipelines.maintenance.clean import clean
from pipelines.maintenance.clean_state import clean_state
from pipelines.maintenance.erased_files import finish_erasures
from pipelines.maintenance.retire import retire
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
        with tagged_run(context, schedule.cluster, schedule.specs):
            for topic in schedule.specs:
                if not lake.has_table(schedule.cluster, topic):
                    continue
                try:
                    context.log.info(_cleaned(settings, LakeTable.of(lake, schedule.cluster, topic), topic))
                except Exception as error:
                    failed[topic] = str(error)
                    context.log.exception("%s: cannot be cleaned", topic)
        if failed:
            raise dg.Failure(f"{len(failed)} tables could not be cleaned", metadata=dict(failed))

    description = "Delete files that no table of the schedule needs, and merge small files."
    return job_of(clean_schedule, schedule.named("clean"), description)


def _cleaned(settings: Settings, table: LakeTable, topic: str) -> str:
    """Clean a table and its state table. Returns a line for the log of the run."""
    keep, target_bytes = timedelta(days=settings.housekeeping.keep_days), settings.housekeeping.file_bytes
    options = settings.options_of(topic)
    results = [clean(table, keep=keep, target_bytes=target_bytes, dry_run=False)]
    if options.state is not None:
        results.append(clean_state(table, keep=keep, target_bytes=target_bytes, dry_run=False))
    erased = finish_erasures(table, older_than=timedelta(days=settings.housekeeping.erase_days), dry_run=False)
    deleted = sum(len(result.collected) for result in results)
    merged, larger = sum(result.merged for result in results), sum(result.larger for result in results)
    of_erasures = sum(len(part.deleted) + len(part.beside) for part in erased)
    and_erased = f", deleted {of_erasures} files with erased rows" if of_erasures else ""
    done = f"{topic}: deleted {deleted} files, merged {merged} files into {larger}{and_erased}"
    # It comes last: a table whose rows cannot be retired is cleaned, and its erasures end.
    retired = retire(table, options.rows_since, dry_run=False) if options.rows_since else None
    rows = f", retired {retired.rows} rows from before {retired.before}" if retired else ""
    kept = f", kept {retired.kept} old files that cannot be retired" if retired and retired.kept else ""
    return f"{done}{rows}{kept}"
