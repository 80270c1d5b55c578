"""Penstock in one process: what Spark's workers run, and the plan and the commit around it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafka_io.records import logs
from pipelines.loading.execute import fetch_here
from pipelines.loading.load import Loader
from resources.kafka import open_cluster
from resources.settings import Caps, ClusterSettings, Settings
from tests.bench.cases import PARQUET_CODEC, Job

_CLUSTER = "bench"


class NotLoaded(RuntimeError):
    """The load ended with an error."""


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The load, with a load behind it."""
    logs.warm()
    load(job.topic, settings(job.warming()), no_session, fetch=fetch_here)
    yield lambda: load(job.topic, settings(job), no_session, fetch=fetch_here)


def settings(job: Job, *, tasks: int = 1) -> Settings:
    """As a user who sets nothing has them, but for the files' codec, which is everyone's, and slices for `tasks`."""
    return Settings(
        lake=str(job.folder),
        parquet_codec=PARQUET_CODEC,
        clusters={_CLUSTER: ClusterSettings(bootstrap=job.bootstrap)},
        caps=Caps(slice_records=min(Caps().slice_records, max(1, job.records // tasks))),
    )


def load(topic: str, of: Settings, session: Callable[[], Any], **rest: Any) -> None:
    """Load the topic into a new table.

    Raises:
        NotLoaded: with the load's own error.
    """
    with open_cluster(of, _CLUSTER) as cluster:
        done = Loader.of(of, cluster, session, **rest).load(topic)
    if done.error:
        raise NotLoaded(f"{done.error}\n{done.trace or ''}")


def no_session() -> None:
    """What stands for Spark where there is none."""
