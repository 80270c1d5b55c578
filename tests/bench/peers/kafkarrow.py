"""kafkarrow: librdkafka and Rust, Arrow batches without a Python object per message.

It gives neither headers nor the timestamp's type, and merges all partitions by time: its one file lacks these columns
and is not split, which is less work than the others do. With a long queue its time grows with the square of it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafkarrow import MESSAGE_SCHEMA, ConsumerManager, SourceTopic

from tests.bench.cases import Job
from tests.bench.files import OutputFile

_SETTINGS = {
    "fetch.queue.backoff.ms": "2",
    "fetch.wait.max.ms": "10",
    "queued.min.messages": "100000",
    "fetch.message.max.bytes": str(1024 * 1024),
}
_AT_ONCE = 100_000
_WAIT_MS = 1000
_MOST_EMPTY = 30


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The load, with a load behind it."""
    _load(job.warming())
    yield lambda: _load(job)


def _load(job: Job) -> None:
    config = {"bootstrap.servers": job.bootstrap, "group.id": "bench", **_SETTINGS}
    manager = ConsumerManager(config=config, topics=[SourceTopic.from_earliest(job.topic)], batch_size=_AT_ONCE)
    left = job.records
    empty = 0
    with OutputFile(job.folder / "all.parquet", MESSAGE_SCHEMA) as file:
        while left:
            batch = manager.poll(timeout_ms=_WAIT_MS)
            left -= batch.num_rows
            empty = 0 if batch.num_rows else empty + 1
            if empty > _MOST_EMPTY:
                raise TimeoutError(f"{left} records are missing")
            if batch.num_rows:
                file.write(batch)
