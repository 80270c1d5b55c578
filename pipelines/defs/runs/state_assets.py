"""The assets of state tables: `<key of the table>/state`, for topics and tables that have one in the settings.

Schedules without such a topic have no definition of this module.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import dagster as dg

from pipelines.defs.catalog.catalog import TopicSchedule
from resources.errors import LoadError, TableMissing
from resources.printed import printed

if TYPE_CHECKING:
    from pipelines.state_tables.update import StateUpdate

STATE = "state"
"""The last part of the key of the asset."""


def state_key(table: dg.AssetKey) -> dg.AssetKey:
    """The key of the state table that is made from the table with this key."""
    return dg.AssetKey([*table.path, STATE])


def state_assets(schedule: TopicSchedule) -> Iterator[dg.AssetsDefinition]:
    """The multi-assets of the state tables of a schedule; none if no topic has one."""
    options_of = schedule.catalog.settings.options_of
    for end, tables in schedule.buckets():
        with_state = [table for table in tables if options_of(table).state is not None]
        if with_state:
            yield _assets_of(schedule, schedule.op(STATE) + end, with_state)


def _spec(schedule: TopicSchedule, name: str) -> dg.AssetSpec:
    table, props = schedule.specs[name], schedule.props(name)
    return dg.AssetSpec(
        state_key(table.key),
        deps=[table.key],
        group_name=table.group_name,
        owners=list(table.owners),
        kinds={"deltalake"},
        skippable=True,
        automation_condition=dg.AutomationCondition.eager(),
        description=f"The newest row of each key of the {'table' if props.route else 'topic'} {name}.",
        metadata=props.metadata,
    )


def _assets_of(schedule: TopicSchedule, op_name: str, tables: Sequence[str]) -> dg.AssetsDefinition:
    specs = {table: _spec(schedule, table) for table in tables}

    # Two runs at once are right, but the work of one of them is lost: a limit of 1 for the pool avoids that.
    @dg.multi_asset(
        name=op_name,
        specs=list(specs.values()),
        can_subset=True,
        pool=op_name,
        description="Brings the state tables up to date: the newest row of each key. Each table is committed "
        "separately. A table that fails does not affect the others, but the run ends as failed.",
    )
    def state(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
        selected = {topic: spec.key for topic, spec in specs.items() if spec.key in context.selected_asset_keys}
        yield from _updates(context, schedule, selected)

    return state


def _updates(
    context: dg.AssetExecutionContext, schedule: TopicSchedule, selected: Mapping[str, dg.AssetKey]
) -> Iterator[dg.MaterializeResult[None]]:
    """Update the state tables, and yield an event for each that changed.

    Raises:
        dagster.Failure: one of them failed. Dagster retries only what can pass.
    """
    # Imported here, because DuckDB takes time to import, and code locations without state tables do not need it.
    from pipelines.formats.tables import lake_table  # noqa: PLC0415
    from pipelines.reports.lineage_jobs import JobLineage  # noqa: PLC0415
    from pipelines.state_tables.reported import reported_state_update  # noqa: PLC0415

    penstock = schedule.catalog.source.fresh()
    settings, lake = penstock.settings(), penstock.lake()
    lineage = JobLineage.of(settings, schedule.cluster, run_id=context.run.run_id, warn=context.log.warning)
    errors: list[LoadError] = []
    for topic, key in selected.items():
        options = settings.options_of(topic)
        try:
            if options.state is None:
                context.log.warning("%s: the settings have no state table of this topic any more", topic)
                continue
            table = lake_table(lake, schedule.cluster, topic)
            update = reported_state_update(lineage, table, options)
        except TableMissing:
            context.log.info("%s: nothing was loaded yet", topic)
            continue
        except LoadError as error:
            context.log.error("%s: %s", topic, error)  # noqa: TRY400 - people need no stack trace of it
            errors.append(error)
            continue
        context.log.info("%s: %s", topic, printed(update))
        if update.version != update.since or update.rebuilt:
            yield dg.MaterializeResult(asset_key=key, metadata=_metadata(update))
    if errors:
        first = errors[0]
        description = f"{len(errors)} of {len(selected)} state tables are not up to date: {first}"
        raise dg.Failure(description, allow_retries=all(error.retriable for error in errors))


def _metadata(update: "StateUpdate") -> Mapping[str, int | bool | str]:
    facts = printed(update)
    return {"dagster/uri": facts.pop("table"), **{name: fact for name, fact in facts.items() if name != "topic"}}
