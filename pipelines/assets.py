"""The asset: one lake table per Kafka topic."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import dagster as dg

from pipelines.loading.load import Loader, TopicLoad
from pipelines.partitions import key_of, parse_key, topics
from pipelines.report import metadata
from resources.penstock import PenstockResource
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
    loads = list(_loads(context, config, penstock))
    failures = [f"{key}: {load.error}" for load, key in loads if load.error]
    if not failures:
        for load, key in loads:
            context.add_asset_metadata(metadata(load), partition_key=key)
        return
    for load, key in loads:
        if load.error is None:
            event = dg.AssetMaterialization(asset_key=context.asset_key, partition=key, metadata=metadata(load))
            context.log_event(event)
    raise dg.Failure(
        f"{len(failures)} of {len(loads)} topics were not loaded in full: {failures[0]}",
        metadata={"errors": dg.MetadataValue.json(failures)},
        allow_retries=False,
    )


def _loads(
    context: dg.AssetExecutionContext, config: LoadConfig, penstock: PenstockResource
) -> Iterator[tuple[TopicLoad, str]]:
    """The loads of the run's topics, a cluster after the other. Terminating the run ends its Spark work (S04)."""
    keys = sorted(map(parse_key, context.partition_keys))
    try:
        for cluster, group in groupby(keys, key=lambda key: key[0]):
            names = [name for _, name in group]
            yield from _cluster_loads(context, config, penstock, cluster, names)
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError) as error:
        # A retry policy would take the interrupt for a failure and start the run again (FINDINGS, 4).
        raise dg.Failure("the run was terminated; nothing uncommitted is visible", allow_retries=False) from error


def _cluster_loads(
    context: dg.AssetExecutionContext,
    config: LoadConfig,
    penstock: PenstockResource,
    cluster_name: str,
    names: Sequence[str],
) -> Iterator[tuple[TopicLoad, str]]:
    with penstock.cluster(cluster_name) as cluster:
        loader = Loader.of(
            penstock.settings(),
            cluster,
            penstock.session,
            run_id=context.run_id,
            backfill=config.from_earliest,
            start="earliest" if config.from_earliest else None,
            on_progress=lambda name: _progress(context, key_of(cluster_name, name)),
        )
        for name in names:
            load, key = loader.load(name), key_of(cluster_name, name)
            context.log.info("%s: %d rows, version %s, %.1f s", key, load.rows, load.version, load.seconds)
            for sentence in load.warnings:
                context.log.warning("%s: %s", key, sentence)
            if load.error:
                context.log.error("%s: %s", key, load.error)
            yield load, key


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
