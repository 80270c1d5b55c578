"""A Spark job that does nothing: what any scheduled job pays."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from resources.spark import close_session, open_session
from tests.bench.cases import Job
from tests.bench.peers.spark_job import SETTINGS


@contextmanager
def ready(_: Job) -> Iterator[Callable[[], None]]:
    """The job, from nothing."""
    yield _run


def _run() -> None:
    open_session(SETTINGS).range(1).collect()
    close_session()
