"""The checks as Dagster defines them, and the jobs that watch topics and verify tables."""

from collections.abc import Iterable, Iterator

import dagster as dg

from pipelines.defs.catalog.catalog import TopicSchedule, job_of, watch_pool_of
from pipelines.defs.catalog.checks import DESCRIPTIONS, PROOF_CHECKS
from pipelines.defs.runs.check_runs import CheckRun
from pipelines.defs.runs.run_tags import StepContext, tagged_run


def topic_checks(schedule: TopicSchedule) -> Iterator[dg.AssetChecksDefinition]:
    """The checks of every topic of the schedule, for everybody who executes them in the UI."""
    for end, topics in schedule.buckets():
        yield _checks_of(schedule, schedule.op("check") + end, topics)


def _checks_of(schedule: TopicSchedule, op_name: str, topics: Iterable[str]) -> dg.AssetChecksDefinition:
    by_key = {schedule.key(topic): topic for topic in topics}
    options_of = schedule.catalog.settings.options_of

    @dg.multi_asset_check(
        name=op_name,
        specs=[
            dg.AssetCheckSpec(
                name, asset=key, description=DESCRIPTIONS[name], blocking=options_of(topic).catalog.blocking_checks
            )
            for key, topic in by_key.items()
            for name in schedule.checks(topic)
        ],
        can_subset=True,
        pool=watch_pool_of(schedule.cluster),
    )
    def checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        wanted: dict[str, list[str]] = {}
        for key in sorted(context.selected_asset_check_keys):
            wanted.setdefault(by_key[key.asset_key], []).append(key.name)
        with tagged_run(context, schedule.cluster, wanted):
            verdicts = _check_run(context, schedule).results(wanted)
        for (topic, name), verdict in verdicts.items():
            yield dg.AssetCheckResult(asset_key=schedule.key(topic), check_name=name, **verdict.fields())

    return checks


def _check_run(context: StepContext, schedule: TopicSchedule) -> CheckRun:
    return CheckRun(instance=context.instance, penstock=schedule.catalog.source.fresh(), schedule=schedule)


def watch_job(schedule: TopicSchedule) -> dg.JobDefinition:
    """The job that compares every topic of the schedule with its table, and reports what changed."""

    @dg.op(name=schedule.op("watch"), pool=watch_pool_of(schedule.cluster))
    def watch(context: dg.OpExecutionContext) -> None:
        """Compare every topic of the schedule with its table: lag, freshness, and the time until records are lost."""
        run = _check_run(context, schedule)
        wanted = {topic: set(schedule.checks(topic)) - set(PROOF_CHECKS) for topic in schedule.specs}
        with tagged_run(context, schedule.cluster, schedule.specs):
            verdicts = run.results(wanted)
        changed = run.changed(verdicts)
        context.log.info("%d results of checks, of which %d are new or changed", len(verdicts), len(changed))
        for observation in run.observations():
            context.log_event(observation)
        for evaluation in run.evaluations(changed):
            context.log_event(evaluation)  # type: ignore[arg-type] # Dagster takes it in ops, too

    description = "Observe every topic of the schedule: lag, freshness, and the time until records are lost."
    return job_of(watch, schedule.named("watch"), description)


def verify_job(schedule: TopicSchedule) -> dg.JobDefinition:
    """The job that verifies every table of the schedule."""

    @dg.op(name=schedule.op("verify"))
    def verify_schedule(context: dg.OpExecutionContext) -> None:
        """Verify every table of the schedule."""
        run = _check_run(context, schedule)
        with tagged_run(context, schedule.cluster, schedule.specs):
            verdicts = run.results(dict.fromkeys(schedule.specs, PROOF_CHECKS))
        for evaluation in run.evaluations(verdicts):
            context.log_event(evaluation)  # type: ignore[arg-type] # Dagster takes it in ops, too

    return job_of(verify_schedule, schedule.named("verify"), "Verify every table of the schedule.")
