"""The assets: of each group of topics the topics themselves, and their tables in the lake."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import dagster as dg
from pydantic import Field

from pipelines import run
from pipelines.checks import report_covered
from pipelines.group import TopicGroup
from pipelines.looking import look
from pipelines.report import load_metadata, observation_metadata
from pipelines.watching.status import TopicStatus
from pipelines.workers import sign
from resources.choices import Choices
from resources.penstock import PenstockResource
from resources.settings import Retries

SINCE_TAG, UNTIL_TAG = "penstock/since", "penstock/until"
_Event = dg.AssetMaterialization | dg.AssetObservation | dg.MaterializeResult[None]


_SETTINGS = "settings"
"""The choice that leaves it to the settings."""


def _chosen(name: str) -> Any:
    """A field of the run's config that stands for a setting of Choices."""
    return Field(default=_SETTINGS, description=f"{_SETTINGS}: as they say. {Choices.model_fields[name].description}")


class LoadConfig(dg.Config):
    """What this run loads, and how. The defaults go on from each table's cursor to the newest records."""

    # No default is None: the launchpad would not show its field.
    since: str = Field(
        default="",
        description="Also load what the brokers hold from before a table's first offsets, back to this point: "
        "earliest, a time (2026-01-31T12:00Z), or a time ago (-2h, -7d). A new table starts there. The run tag "
        f"{SINCE_TAG} says the same.",
    )
    until: str = Field(
        default="",
        description="Load nothing from this point on; the next run goes on there. The run tag "
        f"{UNTIL_TAG} says the same.",
    )
    on_expired: Literal["settings", "fail", "skip"] = _chosen("on_expired")
    on_truncated: Literal["settings", "fail", "rewind"] = _chosen("on_truncated")
    on_recreated: Literal["settings", "fail", "restart"] = _chosen("on_recreated")
    on_vanished: Literal["settings", "fail", "wait"] = _chosen("on_vanished")

    def asked(self, tags: Mapping[str, str]) -> run.Asked:
        """What this run is to do, from its config and tags."""
        return run.Asked(
            since=self.since or tags.get(SINCE_TAG),
            until=self.until or tags.get(UNTIL_TAG),
            choices={name: told for name in Choices.model_fields if (told := getattr(self, name)) != _SETTINGS},
        )


def topics_asset(group: TopicGroup) -> dg.AssetsDefinition:
    """The source: what the brokers hold of the group's topics, beside what the tables hold."""

    def topics(context: dg.AssetExecutionContext, penstock: PenstockResource) -> dg.ObserveResult:
        sign(context)
        return dg.ObserveResult(asset_key=group.topics, metadata=observation_metadata(look(penstock, group)))

    # The "multi" one of one asset: Dagster 1.13 warns of its own code where it is the plain one.
    declare = dg.multi_observable_source_asset(
        name=group.named("kafka"),
        specs=[
            dg.AssetSpec(
                group.topics,
                group_name=group.in_dagster,
                description=f"The topics of the group {group.name} in the Kafka cluster {group.cluster}: how far the "
                "tables are behind them, and how long it takes until retention removes what is not loaded.",
            )
        ],
    )
    declared: dg.AssetsDefinition = declare(topics)
    return declared


def table_asset(group: TopicGroup, retries: Retries) -> dg.AssetsDefinition:
    """The tables: one partition per topic, continued from its committed offsets."""

    @dg.asset(
        key=group.tables,
        deps=[group.topics],
        partitions_def=group.partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        kinds={"kafka", "delta"},
        group_name=group.in_dagster,
        pool=group.pool,
        description="One Delta table per Kafka topic, continued from its committed offsets. Each topic is committed "
        "by itself: one that fails takes nothing from the others, but the run is told as failed.",
    )
    def tables(context: dg.AssetExecutionContext, config: LoadConfig, penstock: PenstockResource) -> Iterator[_Event]:
        sign(context)
        done: dict[str, run.Done] = {}
        try:
            for key, one in run.loads(context, config.asked(context.run.tags), penstock, group):
                run.tell(context, key, one.load)
                done[key] = one
        except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError) as error:
            yield from _events(context, done, {})
            # A retry policy would take the interrupt for a failure and start the run again (FINDINGS, 4).
            raise dg.Failure("the run was terminated; nothing uncommitted is visible", allow_retries=False) from error
        after = run.standing(context, penstock, group, done)
        if any(one.load.error for one in done.values()):
            yield from _events(context, done, after)
            report_covered(context, penstock, group, [key for key, one in done.items() if not one.load.error])
            raise run.failure(context, done, retries)
        for key, one in done.items():
            context.add_asset_metadata(_metadata(one, after.get(key)), partition_key=key)
        yield dg.MaterializeResult()

    return tables


def _events(
    context: dg.AssetExecutionContext, done: Mapping[str, run.Done], after: Mapping[str, TopicStatus]
) -> Iterator[_Event]:
    """What a step that fails must say by itself: these topics are loaded, and of those this much, for this reason.

    Yielded, not logged: Dagster drops what was logged when the step raises.
    """
    for key, one in done.items():
        kind = dg.AssetObservation if one.load.error else dg.AssetMaterialization
        yield kind(asset_key=context.asset_key, partition=key, metadata=_metadata(one, after.get(key)))


def _metadata(one: run.Done, after: TopicStatus | None) -> dict[str, dg.MetadataValue]:
    return load_metadata(one.load, late_before_s=one.late_s, after=after)
