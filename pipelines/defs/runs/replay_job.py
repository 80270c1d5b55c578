"""The replay job: it fetches an interval of one topic again, as `penstock replay` does."""

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg
from pydantic import Field

from kafka_io.errors import LocatedError
from pipelines.defs.catalog.catalog import Catalog, cluster_named, job_of, pool_of
from pipelines.defs.catalog.metadata import log_progress, replay_metadata
from pipelines.defs.catalog.topic_keys import identifier
from pipelines.defs.runs.run_tags import tagged_run
from pipelines.formats.tables import lake_table
from pipelines.load.load import Loader
from pipelines.reports.lineage_jobs import JobLineage
from pipelines.rewrites.replay_request import OnCompacted, ReplayRequest
from pipelines.rewrites.replay_result import TopicReplay
from pipelines.rewrites.reported import reported_replay
from resources.explanations.codes import code_of, code_of_kind, coded
from resources.penstock import PenstockResource

_DESCRIPTION = "Fetches an interval of one topic again and replaces the table's rows of that interval."


class ReplayConfig(dg.Config):
    """Which interval to fetch again. Points are written as for `penstock replay`."""

    topic: str
    """The topic, or one of its tables, such as `events/orders`."""
    since: str
    """Where to start: a time (2026-01-31T12:00Z, -2h), an offset of one partition, or earliest."""
    until: str
    """Where to end: a time, an offset of one partition, or latest."""
    partitions: list[str] = Field(default=[])
    """Only these partitions; `<broker>-<number>` on a cluster of Kafka 0.7."""
    on_compacted: OnCompacted = "fail"
    """What to do with rows whose records were compacted away since: fail or drop."""

    def request(self) -> ReplayRequest:
        """The interval, with times relative to now."""
        return ReplayRequest.parse(**self.model_dump(), now=datetime.now(UTC))


def replay_op(catalog: Catalog, cluster: str) -> str:
    """The name of the op that replays."""
    return f"{identifier(catalog.name)}_replay__{identifier(cluster)}"


def replay_job(catalog: Catalog, cluster: str) -> dg.JobDefinition:
    """The replay job of a cluster."""

    @dg.op(name=replay_op(catalog, cluster), pool=pool_of(cluster))
    def replay_interval(
        context: dg.OpExecutionContext, config: ReplayConfig
    ) -> Iterator[dg.AssetObservation | dg.Output[None]]:
        """Fetch an interval of one topic again. It writes one commit, or none if the rows are the same."""
        try:
            with tagged_run(context, cluster, [config.topic]):
                result = _replay(context, config.request(), catalog.source.fresh(), cluster)
        except (LocatedError, ValueError) as error:
            # A ValueError is a wrong field of the config: what is wrong use on the command line.
            code = code_of(type(error)) if isinstance(error, LocatedError) else code_of_kind("UsageError")
            raise dg.Failure(coded(f"{type(error).__name__}: {error}", code), allow_retries=False) from error
        metadata = replay_metadata(result)
        if result.error:
            raise dg.Failure(result.error, metadata=metadata, allow_retries=False)
        yield dg.AssetObservation(asset_key=catalog.key(cluster, config.topic), metadata=metadata)
        yield dg.Output(None, metadata=metadata)

    return job_of(replay_interval, cluster_named(catalog, "replay", cluster), _DESCRIPTION)


def _replay(
    context: dg.OpExecutionContext, request: ReplayRequest, penstock: PenstockResource, cluster_name: str
) -> TopicReplay:
    settings = penstock.settings()
    lineage = JobLineage.of(settings, cluster_name, run_id=context.run_id, warn=context.log.warning)
    with penstock.cluster(cluster_name) as cluster:
        run = Loader.of(settings, cluster, penstock.session, run_id=context.run_id).run
        table = lake_table(penstock.lake(), cluster_name, request.topic)
        return reported_replay(lineage, run, table, request, log_progress(context.log, request.topic))
