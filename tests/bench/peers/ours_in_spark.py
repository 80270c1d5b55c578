"""Penstock as it is shipped: the load of a topic on a warm Spark session."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from resources.spark import close_session, open_session
from tests.bench.cases import PARTITIONS, Job
from tests.bench.peers.ours import load, settings
from tests.bench.peers.spark_job import SETTINGS

_SMALL = 10 * PARTITIONS  # also where the topic to warm up with is smaller


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The load, with Spark running and a load behind it."""
    session = open_session(SETTINGS)
    try:
        warm_up = replace(job, topic=job.warm_up, folder=job.folder.with_name("warm-up"))
        load(warm_up.topic, settings(warm_up, tasks=_SMALL), lambda: session)
        yield lambda: load(job.topic, settings(job, tasks=PARTITIONS), lambda: session)
    finally:
        close_session()
