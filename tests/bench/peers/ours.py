"""Penstock in one process: what Spark's workers run, and the plan and the commit around it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafka_io.records import logs
from pipelines.loading.execute import fetch_here
from pipelines.loading.load import Loader
from resources.kafka import open_cluster
from resources.settings import Caps, ClusterSettings, Settings
from tests.bench.cases import Job

_CLUSTER = "bench"


class NotLoaded(RuntimeError):
    """The load ended with an error."""


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The load, with a load behind it."""
    logs.warm()
    load(job.topic, settings(job.warming()), no_session, fetch=fetch_here)
    yield lambda: load(job.topic, settings(job), no_session, fetch=fetch_here)


def settings(job: Job) -> Settings:
    """As a user who sets nothing has them."""
    return Settings(
        lake=str(job.folder), clusters={_CLUSTER: ClusterSettings(bootstrap=job.bootstrap)}, caps=Caps(), spark={}
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
