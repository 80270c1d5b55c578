"""The command `penstock load <topic>` with smaller slices: it starts Spark, and Spark's workers fetch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.bench.cases import PARTITIONS, Job
from tests.bench.peers.cold_ours import command


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The command, in a new process."""
    yield command(job, f"[caps]\nslice_records = {job.records // PARTITIONS}\ndriver_slices = 1\n")
