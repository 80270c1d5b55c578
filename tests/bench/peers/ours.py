"""Penstock in one process: what Spark's workers run, and the plan and the commit around it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from kafka_io.records import logs
from pipelines.loading.fetch import fetch_slices
from pipelines.loading.load import Loader
from pipelines.loading.work import Facts, Work
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
    with patch("pipelines.loading.load.execute", _execute_here):
        load(job.topic, settings(job.warming()), no_session)
        yield lambda: load(job.topic, settings(job), no_session)


def settings(job: Job) -> Settings:
    """As a user who sets nothing has them."""
    return Settings(
        lake=str(job.folder), clusters={_CLUSTER: ClusterSettings(bootstrap=job.bootstrap)}, caps=Caps(), spark={}
    )


def load(topic: str, of: Settings, session: Callable[[], Any]) -> None:
    """Load the topic into a new table.

    Raises:
        NotLoaded: with the load's own error.
    """
    with open_cluster(of, _CLUSTER) as cluster:
        done = Loader.of(of, cluster, session).load(topic)
    if done.error:
        raise NotLoaded(f"{done.error}\n{done.trace or ''}")


def no_session() -> None:
    """What stands for Spark where there is none."""


def _execute_here(_session: None, works: Sequence[Work], _progress: object) -> list[Facts]:
    batch = pa.RecordBatch.from_pydict({"task": [work.task for work in works], "work": [w.to_json() for w in works]})
    return [Facts.from_json(text) for facts in fetch_slices(iter([batch])) for text in facts["facts"].to_pylist()]
