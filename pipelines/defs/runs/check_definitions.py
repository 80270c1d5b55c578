"""The checks as Dagster defines them, and the jobs that watch topics and verify tables."""

from collections.abc import Iterable, Iterator

import dagster as dg

from pipelines.defs.catalog.catalog import TopicGroup, watch_pool_of
from pipelines.defs.catalog.checks import DESCRIPTIONS, PROOF_CHECKS
from pipelines.defs.runs.check_runs import CheckRun
from pipelines.defs.runs.run_tags import StepContext, tagged_run


def topic_checks(group: TopicGroup) -> Iterator[dg.AssetChecksDefinition]:
    """The checks of every topic of the group, for everybody who executes them in the UI."""
    for end, topics in group.buckets():
        yield _checks_of(group, group.op("check") + end, topics)


def _checks_of(group: TopicGroup, op_name: str, topics: Iterable[str]) -> dg.AssetChecksDefinition:
    by_key = {group.key(topic): topic for topic in topics}
    settings_of = group.catalog.settings.format_of

    @dg.multi_asset_check(
        name=op_name,
        specs=[
            dg.AssetCheckSpec(
                name, asset=key, description=DESCRIPTIONS[name], blocking=settings_of(topic).blocking_checks
            )
            for key, topic in by_key.items()
            for name in group.checks(topic)
        ],
        can_subset=True,
        pool=watch_pool_of(group.cluster),
    )
    def checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        wanted: dict[str, list[str]] = {}
        for key in sorted(context.selected_asset_check_keys):
            wanted.setdefault(by_key[key.asset_key], []).append(key.name)
        with tagged_run(context, group.cluster, wanted):
            verdicts = _check_run(context, group).results(wanted)
        for (topic, name), verdict in verdicts.items():
            yield dg.AssetCheckResult(asset_key=group.key(topic), check_name=name, **verdict.fields())

    return checks


def _check_run(context: StepContext, group: TopicGroup) -> CheckRun:
    return CheckRun(instance=context.instance, penstock=group.catalog.source.fresh(), group=group)


def watch_job(group: TopicGroup) -> dg.JobDefinition:
    """The job that compares every topic of the group with its table, and reports what changed."""

    @dg.op(name=group.op("watch"), pool=watch_pool_of(group.cluster))
    def watch(context: dg.OpExecutionContext) -> None:
        """Compare every topic of the group with its table: lag, freshness, and the time until records are lost."""
        run = _check_run(context, group)
        wanted = {topic: set(group.checks(topic)) - set(PROOF_CHECKS) for topic in group.specs}
        with tagged_run(context, group.cluster, group.specs):
            verdicts = run.results(wanted)
        changed = run.changed(verdicts)
        context.log.info("%d results of checks, of which %d are new or changed", len(verdicts), len(changed))
        for observation in run.observations():
            context.log_event(observation)
        for evaluation in run.evaluations(changed):
            context.log_event(evaluation)  # type: ignore[arg-type] # Dagster takes it in ops, too

    @dg.job(
        name=group.named("watch"),
        description="Observe every topic of the group: lag, freshness, and the time until retention removes records.",
        executor_def=dg.in_process_executor,
    )
    def watch_topics() -> None:
        watch()

    return watch_topics


def verify_job(group: TopicGroup) -> dg.JobDefinition:
    """The job that verifies every table of the group."""

    @dg.op(name=group.op("verify"))
    def verify_group(context: dg.OpExecutionContext) -> None:
        """Verify every table of the group."""
        run = _check_run(context, group)
        with tagged_run(context, group.cluster, group.specs):
            verdicts = {
                pair: verdict for topic in group.specs for pair, verdict in run.of_table(topic, PROOF_CHECKS).items()
            }
        for evaluation in run.evaluations(verdicts):
            context.log_event(evaluation)  # type: ignore[arg-type] # Dagster takes it in ops, too

    @dg.job(
        name=group.named("verify"),
        description="Verify every table of the group.",
        executor_def=dg.in_process_executor,
    )
    def verify_tables() -> None:
        verify_group()

    return verify_tables
