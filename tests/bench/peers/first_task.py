"""The first task of a running Spark session: it starts a Python worker, which loads or compiles the kernels."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from resources.machines.spark import close_session, for_fetches, open_session
from tests.bench.cases import PARTITIONS, Job
from tests.bench.peers.ours import load, settings
from tests.bench.peers.spark_job import SETTINGS


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The load, in a session that has run one job without Python."""
    session = open_session(for_fetches(SETTINGS))
    try:
        session.range(100).collect()
        yield lambda: load(job.topic, settings(job, tasks=PARTITIONS), lambda: session)
    finally:
        close_session()
