"""The job that is no load: a replay, as the command line runs it."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import dagster as dg
from pydantic import Field

from kafka_io.errors import PlacedError
from pipelines.group import TopicGroup, cluster_named, pool_of
from pipelines.loading.load import Loader
from pipelines.loading.table import LakeTable
from pipelines.mending.asked import Asked, OnCompacted
from pipelines.mending.replay import replay
from pipelines.mending.replayed import TopicReplay
from pipelines.partitions import key_of
from pipelines.report import progress, replay_metadata
from pipelines.workers import sign
from resources.penstock import PenstockResource

_DESCRIPTION = "Fetch an interval of one topic again, and put its rows in the place of those that its table has."


class ReplayConfig(dg.Config):
    """What to fetch again. Points are those of `penstock replay`."""

    topic: str
    """The topic."""
    since: str
    """Where to begin: a time (2026-01-31T12:00Z, -2h), an offset of one partition, or earliest."""
    until: str
    """Where to end: a time, an offset of one partition, or latest."""
    partitions: list[str] = Field(default=[])
    """Only these; `<broker>-<number>` of a cluster of 0.7."""
    on_compacted: OnCompacted = "fail"
    """What becomes of rows that the log no longer has, as it was compacted: fail or drop."""


def replay_job(cluster: str, groups: Sequence[TopicGroup]) -> dg.JobDefinition:
    """The job of a cluster with these groups."""

    @dg.op(name=cluster_named("replay_interval", cluster), pool=pool_of(cluster))
    def replay_interval(
        context: dg.OpExecutionContext, config: ReplayConfig, penstock: PenstockResource
    ) -> Iterator[dg.AssetObservation | dg.Output[None]]:
        """Fetch an interval of one topic again; one commit, or none where the table has the same rows."""
        sign(context)
        try:
            done = _replay(context, config, penstock, cluster)
            name = penstock.settings().group_of(cluster, config.topic)
            (group,) = (one for one in groups if one.name == name)
        except (PlacedError, ValueError) as error:
            raise dg.Failure(f"{type(error).__name__}: {error}", allow_retries=False) from error
        told = replay_metadata(done)
        if done.error:
            raise dg.Failure(done.error, metadata=told, allow_retries=False)
        yield dg.AssetObservation(asset_key=group.tables, partition=key_of(config.topic), metadata=told)
        yield dg.Output(None, metadata=told)

    @dg.job(name=cluster_named("replay", cluster), description=_DESCRIPTION)
    def replaying() -> None:
        replay_interval()

    return replaying


def _replay(
    context: dg.OpExecutionContext, config: ReplayConfig, penstock: PenstockResource, cluster_name: str
) -> TopicReplay:
    asked = Asked.parse(
        config.topic,
        config.since,
        config.until,
        config.partitions,
        on_compacted=config.on_compacted,
        now=datetime.now(UTC),
    )
    with penstock.cluster(cluster_name) as cluster:
        loader = Loader.of(
            penstock.settings(),
            cluster,
            penstock.session,
            run_id=context.run_id,
            on_progress=lambda _: progress(context.log, config.topic),
        )
        return replay(loader, LakeTable.of(penstock.lake(), cluster_name, config.topic), asked)
