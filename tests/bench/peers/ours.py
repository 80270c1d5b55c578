"""Penstock in one process: plan, fetch as a Spark worker does, and commit."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafka_io.records import decoder
from pipelines.fetch.fetch_runner import fetch_here
from resources.kafka import open_cluster
from resources.settings.settings import Caps, ClusterSettings, Settings
from tests.bench.cases import PARQUET_CODEC, Job
from tests.fakes.loaders import loader_of

CLUSTER = "bench"


class NotLoaded(RuntimeError):
    """The load ended with an error."""


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The load, after one load outside the clock."""
    decoder.warm()
    load(job.topic, settings(job.warming()), no_session, fetch=fetch_here)
    yield lambda: load(job.topic, settings(job), no_session, fetch=fetch_here)


def settings(job: Job, *, tasks: int = 1) -> Settings:
    """Default settings, except for the codec that all loaders write and slices small enough for `tasks` tasks."""
    return Settings(
        lake=str(job.folder),
        parquet_codec=PARQUET_CODEC,
        clusters={CLUSTER: ClusterSettings(bootstrap=job.bootstrap)},
        caps=Caps(slice_records=min(Caps().slice_records, max(1, job.records // tasks)), driver_slices=1),
    )


def load(topic: str, using: Settings, session: Callable[[], Any], **options: Any) -> None:
    """Load the topic into a new table.

    Raises:
        NotLoaded: the load failed; the message has its error.
    """
    with open_cluster(using, CLUSTER) as cluster:
        result = loader_of(using, cluster, session, **options).load(topic)
    if result.error:
        raise NotLoaded(f"{result.error}\n{result.trace or ''}")


def no_session() -> None:
    """Stands in for a Spark session in a load that needs none."""
