"""The assets of a group: its Kafka topics as the source, and their tables in the lake."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from typing import Any, Literal

import dagster as dg
from pydantic import Field

from pipelines.defs import run
from pipelines.defs.checks import report_coverage
from pipelines.defs.group_status import ask_group_status
from pipelines.defs.metadata import load_metadata, observation_metadata
from pipelines.defs.run_liveness import tag_worker
from pipelines.defs.topic_group import TopicGroup
from pipelines.status.status import TopicStatus
from resources.choices import Choices
from resources.penstock import PenstockResource
from resources.settings import Retries

SINCE_TAG, UNTIL_TAG = "penstock/since", "penstock/until"
_Event = dg.AssetMaterialization | dg.AssetObservation | dg.MaterializeResult[None]


_FROM_SETTINGS = "settings"
"""The value of a choice in the run config that keeps the choice of the settings."""


def _choice_field(name: str) -> Any:
    """A field of the run config that can replace a setting of Choices."""
    meaning = Choices.model_fields[name].description
    return Field(default=_FROM_SETTINGS, description=f"{_FROM_SETTINGS}: keep the value of the settings. {meaning}")


class LoadConfig(dg.Config):
    """What this run loads, and how. By default it continues at each table's cursor, up to the newest records."""

    # No default is None: the launchpad would not show its field.
    since: str = Field(
        default="",
        description="Also load older records that the brokers still hold from before a table's first offsets, back to "
        "this point: earliest, a time (2026-01-31T12:00Z), or a duration before now (-2h, -7d). A new table starts "
        f"there. The run tag {SINCE_TAG} has the same meaning.",
    )
    until: str = Field(
        default="",
        description="Load nothing from this point on; the next run continues there. The run tag "
        f"{UNTIL_TAG} has the same meaning.",
    )
    on_expired: Literal["settings", "fail", "skip"] = _choice_field("on_expired")
    on_truncated: Literal["settings", "fail", "rewind"] = _choice_field("on_truncated")
    on_recreated: Literal["settings", "fail", "restart"] = _choice_field("on_recreated")
    on_vanished: Literal["settings", "fail", "wait"] = _choice_field("on_vanished")

    def request(self, tags: Mapping[str, str]) -> run.LoadRequest:
        """What this run loads, from its config and, where that is silent, its tags."""
        return run.LoadRequest(
            since=self.since or tags.get(SINCE_TAG),
            until=self.until or tags.get(UNTIL_TAG),
            choices={name: value for name in Choices.model_fields if (value := getattr(self, name)) != _FROM_SETTINGS},
        )


def topics_asset(group: TopicGroup) -> dg.AssetsDefinition:
    """The source asset: what the brokers hold of the group's topics, beside what the tables hold."""

    def topics(context: dg.AssetExecutionContext, penstock: PenstockResource) -> dg.ObserveResult:
        tag_worker(context)
        return dg.ObserveResult(
            asset_key=group.topics, metadata=observation_metadata(ask_group_status(penstock, group))
        )

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
        pool=group.pool,
        description="One Delta table per Kafka topic, continued from its committed offsets. Each topic is committed "
        "separately: a topic that fails does not affect the others, but the run ends as failed.",
    )
    def tables(context: dg.AssetExecutionContext, config: LoadConfig, penstock: PenstockResource) -> Iterator[_Event]:
        tag_worker(context)
        loaded: dict[str, run.LoadedTopic] = {}
        with ExitStack() as stack:
            # One connection serves the whole run: the status before, the loads, the status after.
            connect = cache(lambda: stack.enter_context(penstock.cluster(group.cluster)))
            try:
                request = config.request(context.run.tags)
                for key, result in run.load_topics(context, request, penstock, group, connect):
                    run.log_result(context, key, result.load)
                    loaded[key] = result
            except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError) as error:
                yield from _events(context, loaded, {})
                # A retry policy would treat the interrupt as a failure and start the run again (decision D11).
                message = "the run was terminated; uncommitted records are not visible and the next run loads them"
                raise dg.Failure(message, allow_retries=False) from error
            after = run.statuses_after(context, penstock, group, loaded, connect)
        if any(result.load.error for result in loaded.values()):
            yield from _events(context, loaded, after)
            complete = [key for key, result in loaded.items() if not result.load.error]
            report_coverage(context, penstock, group, complete)
            raise run.failure(context, loaded, retries)
        for key, result in loaded.items():
            context.add_asset_metadata(_metadata(result, after.get(key)), partition_key=key)
        yield dg.MaterializeResult()

    return tables


def _events(
    context: dg.AssetExecutionContext, loaded: Mapping[str, run.LoadedTopic], after: Mapping[str, TopicStatus]
) -> Iterator[_Event]:
    """The events of a step that fails: a materialization per loaded topic, an observation per failed one.

    They are yielded, not logged: Dagster drops logged events when the step raises.
    """
    for key, result in loaded.items():
        event = dg.AssetObservation if result.load.error else dg.AssetMaterialization
        yield event(asset_key=context.asset_key, partition=key, metadata=_metadata(result, after.get(key)))


def _metadata(result: run.LoadedTopic, after: TopicStatus | None) -> dict[str, dg.MetadataValue]:
    return load_metadata(result.load, late_before_s=result.late_s, after=after)
