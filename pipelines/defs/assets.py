"""The assets of a group: its Kafka topics as the source, and their tables in the lake."""

from collections.abc import Iterator
from contextlib import ExitStack

import dagster as dg

from pipelines.defs.checks import report_coverage
from pipelines.defs.group_status import ask_group_status
from pipelines.defs.metadata import status_metadata
from pipelines.defs.run import GroupRun, LoadConfig
from pipelines.defs.run_liveness import tag_worker
from pipelines.defs.topic_group import TopicGroup, pool_of
from pipelines.status.status import now_ms
from resources.penstock import PenstockResource
from resources.settings import Retries

_Event = dg.AssetMaterialization | dg.AssetObservation | dg.MaterializeResult[None]


def topics_asset(group: TopicGroup) -> dg.AssetsDefinition:
    """The source asset: what the brokers hold of the group's topics, beside what the tables hold."""

    def topics(context: dg.AssetExecutionContext, penstock: PenstockResource) -> dg.ObserveResult:
        tag_worker(context)
        statuses = ask_group_status(penstock, group)
        problems = {status.topic: status.error for status in statuses if status.error}
        return dg.ObserveResult(asset_key=group.topics, metadata=status_metadata(statuses, now_ms(), problems))

    # The "multi" form with a single asset: Dagster 1.13 warns about its own code in the plain form.
    declare = dg.multi_observable_source_asset(
        name=group.named("kafka"),
        specs=[
            dg.AssetSpec(
                group.topics,
                group_name=group.in_dagster,
                description=f"The topics of the group {group.name} in the Kafka cluster {group.cluster}: how far the "
                "tables are behind them, and how long it takes until retention removes records without a row.",
            )
        ],
    )
    definition: dg.AssetsDefinition = declare(topics)
    return definition


def table_asset(group: TopicGroup, retries: Retries) -> dg.AssetsDefinition:
    """The asset of the group's tables: one partition per topic, continued from its committed offsets."""

    @dg.asset(
        key=group.tables,
        deps=[group.topics],
        partitions_def=group.partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        kinds={"kafka", "delta"},
        group_name=group.in_dagster,
        pool=pool_of(group.cluster),
        description="One Delta table per Kafka topic, continued from its committed offsets. Each topic is committed "
        "separately: a topic that fails does not affect the others, but the run ends as failed.",
    )
    def tables(context: dg.AssetExecutionContext, config: LoadConfig, penstock: PenstockResource) -> Iterator[_Event]:
        tag_worker(context)
        with ExitStack() as stack:
            run = GroupRun(context=context, penstock=penstock, group=group, stack=stack)
            try:
                run.load(config)
            except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError) as error:
                yield from run.events()
                # A retry policy would treat the interrupt as a failure and start the run again (decision D11).
                message = "the run was terminated; uncommitted records are not visible and the next run loads them"
                raise dg.Failure(message, allow_retries=False) from error
            run.ask_statuses_after()
        if run.errors:
            yield from run.events()
            report_coverage(context, penstock, group, [key for key in run.loads if key not in run.errors])
            raise run.failure(retries)
        for key in run.loads:
            context.add_asset_metadata(run.metadata(key), partition_key=key)
        yield dg.MaterializeResult()

    return tables
