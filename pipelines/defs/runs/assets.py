"""The assets of a schedule: one per table, in one multi-asset, so that a run loads any of them with one session.

A topic with several tables is loaded once for all of them, whichever of their assets is selected.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import dagster as dg

from pipelines.defs.catalog.catalog import TopicSchedule, pool_of
from pipelines.defs.catalog.checks import ERASURES, STATUS_CHECKS
from pipelines.defs.catalog.known_topics import TopicStorage, Waiting
from pipelines.defs.catalog.metadata import Metadata
from pipelines.defs.runs.check_runs import CheckRun
from pipelines.defs.runs.run import LoadConfig, ScheduleRun
from pipelines.defs.runs.run_tags import tagged_run
from pipelines.reports.outcome import TopicLoad

_INTERRUPTS = (KeyboardInterrupt, dg.DagsterExecutionInterruptedError)
_Event = dg.MaterializeResult[None] | dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation


def load_assets(schedule: TopicSchedule) -> list[dg.AssetsDefinition]:
    """The multi-assets of the schedule; none if no topic is known."""
    return [_assets_of(schedule, schedule.op("load") + end, tables) for end, tables in schedule.buckets()]


def _assets_of(schedule: TopicSchedule, op_name: str, tables: Sequence[str]) -> dg.AssetsDefinition:
    catalog = schedule.catalog

    @dg.multi_asset(
        name=op_name,
        specs=[schedule.specs[table].with_io_manager_key(catalog.io_key) for table in tables],
        can_subset=True,
        pool=pool_of(schedule.cluster),
        resource_defs=catalog.resources,
        description=f"Loads topics of the Kafka cluster {schedule.cluster}: each continues at the cursors of its table "
        "and is committed separately. A topic that fails does not affect the others, but the run ends as failed. All "
        "tables of a topic are loaded together, also if only some of them are selected.",
    )
    def load(context: dg.AssetExecutionContext, config: LoadConfig) -> Iterator[_Event]:
        by_key = schedule.topics
        selected = list(dict.fromkeys(by_key[key] for key in sorted(context.selected_asset_keys)))
        own = _bounded(context, schedule, selected)
        others = sorted({*schedule.keys(own)} - context.selected_asset_keys)
        if others:
            names = ", ".join(key.to_user_string() for key in others)
            context.log.info("the tables of a topic are loaded together: this run also loads %s", names)
        with tagged_run(context, schedule.cluster, own):
            yield from _load(context, config, schedule, own)

    return load


def _bounded(context: dg.AssetExecutionContext, schedule: TopicSchedule, topics: Sequence[str]) -> Sequence[str]:
    """At most `topics_per_run` of the topics. The sensor of new topics requests runs for the others."""
    max_topics = schedule.catalog.settings.topics_per_run
    own, others = topics[:max_topics], topics[max_topics:]
    if others:
        storage = TopicStorage(instance=context.instance, prefix=schedule.catalog.name, cluster=schedule.cluster)
        began = context.run.run_id
        storage.wait([str(Waiting(since="run", run_id=began, topic=topic)) for topic in others])
        context.log.info(
            "this run loads %d topics, as topics_per_run says; the sensor of new topics requests runs for the other %d",
            len(own),
            len(others),
        )
    return own


def _load(
    context: dg.AssetExecutionContext, config: LoadConfig, schedule: TopicSchedule, topics: Sequence[str]
) -> Iterator[_Event]:
    """Load topics, and yield an event for each."""
    with ExitStack() as stack:
        run = ScheduleRun(context=context, penstock=schedule.catalog.source.fresh(), schedule=schedule, stack=stack)
        try:
            run.load(config, topics)
        except _INTERRUPTS as error:
            yield from _events(run, step_fails=True)
            raise _terminated() from error
        run.ask_statuses_after()
    if run.failed:
        yield from _events(run, step_fails=True)
        # Dagster's page shows an evaluation only if it belongs to the run or is newer than its materialization, and
        # some storages keep times in whole seconds (fault E25).
        yield from _evaluations(context, run)
        try:
            failure = run.failure()  # it may wait for the next attempt
        except _INTERRUPTS as error:
            raise _terminated() from error
        raise failure
    yield from _events(run, step_fails=False)
    for evaluation in _evaluations(context, run):
        context.log_event(evaluation)


def _terminated() -> dg.Failure:
    """The failure of a run that was interrupted."""
    # A retry policy would treat the interrupt as a failure and start the run again (decision D11).
    message = "the run was terminated; uncommitted records are not visible and the next run loads them"
    return dg.Failure(message, allow_retries=False)


def _described(run: ScheduleRun, own: TopicLoad) -> tuple[Metadata, dg.DataVersion | None]:
    """The metadata of what a load did to a table, and the data version of the table."""
    metadata, facts = run.metadata(own), run.facts(own.topic) if own.rows else None
    if facts is None:
        return metadata, None
    return {**metadata, **facts.metadata}, dg.DataVersion(facts.data_version)


def _events(run: ScheduleRun, *, step_fails: bool) -> Iterator[_Event]:
    """The events of a step: a materialization of each table that got rows, otherwise an observation.

    A step that fails yields them too and does not log them: Dagster drops logged events when the step raises. It has
    results only of selected assets, so the event of a table that is loaded with them is no result either.
    """
    selected = run.context.selected_asset_keys
    for own in (table for load in run.loads.values() for table in load.of_tables):
        key, (metadata, version) = run.schedule.key(own.topic), _described(run, own)
        if not own.rows:
            yield dg.AssetObservation(asset_key=key, metadata=metadata)
        elif step_fails or key not in selected:
            tags = {"dagster/data_version": version.value} if version else None
            yield dg.AssetMaterialization(asset_key=key, metadata=metadata, tags=tags)
        else:
            yield dg.MaterializeResult(asset_key=key, metadata=metadata, data_version=version)


def _evaluations(context: dg.AssetExecutionContext, run: ScheduleRun) -> Iterator[dg.AssetCheckEvaluation]:
    """The checks of the tables that this run changed.

    Those that compare a topic with its table, or wait for housekeeping, are reported if they do not pass: after a load,
    Dagster's page shows no older result of them (fault E17). The schedules `watch` and `verify` report the others.
    """
    checks = CheckRun(instance=context.instance, penstock=run.penstock, schedule=run.schedule, known=run.after)
    changed = [own.topic for load in run.loads.values() for own in load.of_tables if own.rows]
    wanted = {table: run.schedule.checks(table) for table in changed}
    if wanted:  # if no topic was loaded, the settings may be missing
        verdicts = checks.results(wanted)
        shown = {
            pair: verdict
            for pair, verdict in verdicts.items()
            if pair[1] not in {*STATUS_CHECKS, ERASURES} or verdict.violation
        }
        yield from checks.evaluations(shown)
