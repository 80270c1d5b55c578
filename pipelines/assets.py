"""The asset: one lake table per Kafka topic."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from typing import Any, get_args

import dagster as dg
from pydantic import Field

from kafka_io.errors import PlacedError
from pipelines.loading.load import Loader
from pipelines.loading.outcome import TopicLoad
from pipelines.partitions import cluster_of, key_of, parse_key, topics
from pipelines.report import metadata, progress
from resources.choices import Choices
from resources.penstock import PenstockResource
from resources.settings import Settings

FROM_EARLIEST_TAG = "penstock/from_earliest"
_Event = dg.AssetMaterialization | dg.AssetObservation | dg.MaterializeResult[None]


def _chosen(name: str) -> Any:
    """A field of the run's config that stands for a setting of Choices."""
    field = Choices.model_fields[name]
    told = " or ".join(get_args(field.annotation))
    return Field(default=None, description=f"{told}; as the settings say if left out. {field.description}")


class LoadConfig(dg.Config):
    """How this run loads. The defaults go on from each table's cursor."""

    from_earliest: bool = False
    """Also load what the brokers hold from before a table's first offsets; a new table starts at the earliest.

    The run tag `penstock/from_earliest: true` says the same.
    """
    on_expired: str | None = _chosen("on_expired")
    on_truncated: str | None = _chosen("on_truncated")
    on_recreated: str | None = _chosen("on_recreated")
    on_vanished: str | None = _chosen("on_vanished")

    def choices(self, settings: Settings, cluster: str) -> Choices:
        """What the settings say, and what this run says instead."""
        return settings.choices_of(cluster).but({name: getattr(self, name) for name in Choices.model_fields})


@dg.asset(
    partitions_def=topics,
    backfill_policy=dg.BackfillPolicy.single_run(),
    kinds={"kafka", "spark", "delta"},
    group_name="lake",
    pool="kafka",
)
def topic_table(context: dg.AssetExecutionContext, config: LoadConfig, penstock: PenstockResource) -> Iterator[_Event]:
    """One Delta table per Kafka topic, continued from its committed offsets.

    Each topic is committed by itself: one that fails takes nothing from the others, but the run is told as failed.
    """
    loads: dict[str, TopicLoad] = {}
    try:
        for key, load in _loads(context, config, penstock):
            _tell(context, key, load)
            loads[key] = load
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError) as error:
        yield from _events(context, loads)
        # A retry policy would take the interrupt for a failure and start the run again (FINDINGS, 4).
        raise dg.Failure("the run was terminated; nothing uncommitted is visible", allow_retries=False) from error
    failures = [f"{key}: {load.error}" for key, load in loads.items() if load.error]
    if failures:
        yield from _events(context, loads)
        raise dg.Failure(
            f"{len(failures)} of {len(loads)} topics were not loaded in full: {failures[0]}",
            metadata={"errors": dg.MetadataValue.json(failures)},
            allow_retries=False,
        )
    for key, load in loads.items():
        context.add_asset_metadata(metadata(load), partition_key=key)
    yield dg.MaterializeResult()


def _events(context: dg.AssetExecutionContext, loads: Mapping[str, TopicLoad]) -> Iterator[_Event]:
    """What a step that fails must say by itself: these topics are loaded, and of those this much, for this reason.

    Yielded, not logged: Dagster drops what was logged when the step raises.
    """
    for key, load in loads.items():
        kind = dg.AssetObservation if load.error else dg.AssetMaterialization
        yield kind(asset_key=context.asset_key, partition=key, metadata=metadata(load))


def _loads(
    context: dg.AssetExecutionContext, config: LoadConfig, penstock: PenstockResource
) -> Iterator[tuple[str, TopicLoad]]:
    """The loads of the run's topics by partition key, a cluster after the other."""
    for cluster, keys in groupby(sorted(context.partition_keys), key=cluster_of):
        yield from _cluster_loads(context, config, penstock, cluster, list(keys))


def _cluster_loads(
    context: dg.AssetExecutionContext,
    config: LoadConfig,
    penstock: PenstockResource,
    cluster_name: str,
    keys: Sequence[str],
) -> Iterator[tuple[str, TopicLoad]]:
    """A cluster that cannot be opened fails its own topics only."""
    with ExitStack() as closing:
        try:
            settings = penstock.settings()
            cluster = closing.enter_context(penstock.cluster(cluster_name))
            choices = config.choices(settings, cluster_name)
        except (PlacedError, ValueError) as error:
            yield from ((key, _failed(key, error)) for key in keys)
            return
        backfill = config.from_earliest or context.run.tags.get(FROM_EARLIEST_TAG) == "true"
        loader = Loader.of(
            settings,
            cluster,
            penstock.session,
            choices=choices,
            run_id=context.run.run_id,
            backfill=backfill,
            start="earliest" if backfill else None,
            on_progress=lambda name: progress(context.log, key_of(cluster_name, name)),
        )
        for key in keys:
            try:
                _, name = parse_key(key)
            except ValueError as error:
                yield key, _failed(key, error)
            else:
                yield key, loader.load(name)


def _failed(key: str, error: Exception) -> TopicLoad:
    return TopicLoad(topic=key, table="", error=f"{type(error).__name__}: {error}")


def _tell(context: dg.AssetExecutionContext, key: str, load: TopicLoad) -> None:
    context.log.info("%s: %d rows, version %s, %.1f s", key, load.rows, load.version, load.seconds)
    for sentence in load.warnings:
        context.log.warning("%s: %s", key, sentence)
    if load.error:
        context.log.error("%s: %s", key, load.error)
