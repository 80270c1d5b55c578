"""Penstock in a running Spark session, as users run it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from resources.machines.spark import close_session, for_fetches, open_session
from tests.bench.cases import PARTITIONS, Job
from tests.bench.peers.ours import load, settings
from tests.bench.peers.spark_job import SETTINGS

_WARM_UP_TASKS = 10 * PARTITIONS  # enough slices for Spark even if the warm-up topic is smaller


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The load, in a session that has loaded once."""
    session = open_session(for_fetches(SETTINGS))
    try:
        warm_up = replace(job, topic=job.warm_up, folder=job.folder.with_name("warm-up"))
        load(warm_up.topic, settings(warm_up, tasks=_WARM_UP_TASKS), lambda: session)
        yield lambda: load(job.topic, settings(job, tasks=PARTITIONS), lambda: session)
    finally:
        close_session()
