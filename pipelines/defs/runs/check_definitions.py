"""The checks as Dagster defines them, and the jobs that watch topics and verify tables."""

from collections.abc import Iterable, Iterator

import dagster as dg

from pipelines.defs.catalog.catalog import TopicSchedule, job_of, watch_pool_of
from pipelines.defs.catalog.checks import DESCRIPTIONS, VERIFY_CHECKS
from pipelines.defs.runs.check_runs import CheckRun
from pipelines.defs.runs.run_tags import tagged_run


def topic_checks(schedule: TopicSchedule) -> Iterator[dg.AssetChecksDefinition]:
    """The checks of every table of the schedule, for everybody who executes them in the UI."""
    for end, tables in schedule.buckets():
        yield _checks_of(schedule, schedule.op("check") + end, tables)


def _checks_of(schedule: TopicSchedule, op_name: str, tables: Iterable[str]) -> dg.AssetChecksDefinition:
    by_key = {schedule.key(table): table for table in tables}
    options_of = schedule.catalog.settings.options_of

    @dg.multi_asset_check(
        name=op_name,
        specs=[
            dg.AssetCheckSpec(
                name, asset=key, description=DESCRIPTIONS[name], blocking=options_of(table).catalog.blocking_checks
            )
            for key, table in by_key.items()
            for name in schedule.checks(table)
        ],
        can_subset=True,
        pool=watch_pool_of(schedule.cluster),
    )
    def checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        wanted: dict[str, list[str]] = {}
        for key in sorted(context.selected_asset_check_keys):
            wanted.setdefault(by_key[key.asset_key], []).append(key.name)
        with tagged_run(context, schedule.cluster, wanted):
            verdicts = CheckRun.of(context.instance, schedule).results(wanted)
        for (table, name), verdict in verdicts.items():
            yield dg.AssetCheckResult(asset_key=schedule.key(table), check_name=name, **verdict.fields())

    return checks


def watch_job(schedule: TopicSchedule) -> dg.JobDefinition:
    """The job that compares every topic of the schedule with its table, and reports what changed."""

    @dg.op(name=schedule.op("watch"), pool=watch_pool_of(schedule.cluster))
    def watch(context: dg.OpExecutionContext) -> None:
        """Compare every topic of the schedule with its table: lag, freshness, and the time until records are lost."""
        with tagged_run(context, schedule.cluster, schedule.tables):
            news = CheckRun.of(context.instance, schedule).news()
        context.log.info("new or changed: %d", len(news))
        for event in news:
            context.log_event(event)  # type: ignore[arg-type] # Dagster takes evaluations in ops, too

    description = "Observe every topic of the schedule: lag, freshness, and the time until records are lost."
    return job_of(watch, schedule.named("watch"), description)


def verify_job(schedule: TopicSchedule) -> dg.JobDefinition:
    """The job that verifies every table of the schedule."""

    @dg.op(name=schedule.op("verify"))
    def verify_schedule(context: dg.OpExecutionContext) -> None:
        """Verify every table of the schedule."""
        run = CheckRun.of(context.instance, schedule)
        with tagged_run(context, schedule.cluster, schedule.tables):
            verdicts = run.results(dict.fromkeys(schedule.specs, VERIFY_CHECKS))
        for evaluation in run.evaluations(verdicts):
            context.log_event(evaluation)  # type: ignore[arg-type] # Dagster takes it in ops, too

    return job_of(verify_schedule, schedule.named("verify"), "Verify every table of the schedule.")
