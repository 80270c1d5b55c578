"""Penstock's own command where a slice may hold less: Spark is started, and its workers fetch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.bench.cases import PARTITIONS, Job
from tests.bench.peers.cold_ours import command


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The command, from nothing."""
    yield command(job, f"[caps]\nslice_records = {job.records // PARTITIONS}\n")
