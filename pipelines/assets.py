"""The asset: one lake table per Kafka topic."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby

import dagster as dg

from kafka_io.errors import PlacedError
from pipelines.loading.load import Loader, TopicLoad
from pipelines.partitions import cluster_of, key_of, parse_key, topics
from pipelines.report import metadata
from resources.penstock import PenstockResource
from resources.settings import SettingsError
from resources.spark import Progress


class LoadConfig(dg.Config):
    """How this run loads. The defaults go on from each table's cursor."""

    from_earliest: bool = False
    """Also load what the brokers hold from before a table's first offsets; a new table starts at the earliest."""


@dg.asset(
    partitions_def=topics,
    backfill_policy=dg.BackfillPolicy.single_run(),
    kinds={"kafka", "spark", "delta"},
    group_name="lake",
    pool="kafka",
)
def topic_table(context: dg.AssetExecutionContext, config: LoadConfig, penstock: PenstockResource) -> None:
    """One Delta table per Kafka topic, continued from its committed offsets.

    Each topic is committed by itself: one that fails takes nothing from the others, but the run is told as failed.
    """
    loads: dict[str, TopicLoad] = {}
    try:
        for key, load in _loads(context, config, penstock):
            _tell(context, key, load)
            loads[key] = load
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError) as error:
        _log_events(context, loads)
        # A retry policy would take the interrupt for a failure and start the run again (FINDINGS, 4).
        raise dg.Failure("the run was terminated; nothing uncommitted is visible", allow_retries=False) from error
    failures = [f"{key}: {load.error}" for key, load in loads.items() if load.error]
    if not failures:
        for key, load in loads.items():
            context.add_asset_metadata(metadata(load), partition_key=key)
        return
    _log_events(context, loads)
    raise dg.Failure(
        f"{len(failures)} of {len(loads)} topics were not loaded in full: {failures[0]}",
        metadata={"errors": dg.MetadataValue.json(failures)},
        allow_retries=False,
    )


def _log_events(context: dg.AssetExecutionContext, loads: Mapping[str, TopicLoad]) -> None:
    """What a run that fails must say by itself: these are loaded, and of those this much, for this reason."""
    for key, load in loads.items():
        kind = dg.AssetObservation if load.error else dg.AssetMaterialization
        context.log_event(kind(asset_key=context.asset_key, partition=key, metadata=metadata(load)))


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
            cluster = closing.enter_context(penstock.cluster(cluster_name))
        except (PlacedError, SettingsError) as error:
            yield from ((key, _failed(key, error)) for key in keys)
            return
        loader = Loader.of(
            penstock.settings(),
            cluster,
            penstock.session,
            run_id=context.run_id,
            backfill=config.from_earliest,
            start="earliest" if config.from_earliest else None,
            on_progress=lambda name: _progress(context, key_of(cluster_name, name)),
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


def _progress(context: dg.AssetExecutionContext, key: str) -> Progress:
    """Lines in the run's log, at most one per tenth of the work."""
    told = 0

    def tell(done: int, total: int) -> None:
        nonlocal told
        tenth = 10 * done // total
        if tenth > told:
            told = tenth
            context.log.info("%s: %d of %d tasks done", key, done, total)

    return tell
