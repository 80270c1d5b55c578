"""A Spark job that does nothing: the cost of starting any Spark job."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from resources.machines.spark import close_session, open_session
from tests.bench.cases import Job
from tests.bench.peers.spark_job import SETTINGS


@contextmanager
def ready(_: Job) -> Iterator[Callable[[], None]]:
    """The job, in a new process."""
    yield _run


def _run() -> None:
    open_session(SETTINGS).range(1).collect()
    close_session()
