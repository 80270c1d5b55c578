"""A job with Spark's own Kafka source in a new process: start the JVM, load, stop."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from resources.machines.spark import close_session, open_session
from tests.bench.cases import Job
from tests.bench.peers.spark import load
from tests.bench.peers.spark_job import SOURCE_SETTINGS


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The job, in a new process."""
    yield lambda: _run(job)


def _run(job: Job) -> None:
    load(open_session({**SOURCE_SETTINGS, "spark.jars": job.jars}), job.bootstrap, job.topic, job.folder)
    close_session()
