"""kafkarrow: librdkafka with Rust. It returns Arrow batches and creates no Python object per message.

It returns neither headers nor the timestamp's type, and merges all partitions by time. So it writes one file without
these columns, which is less work than the other loaders do. Its time grows with the square of its queue's length.
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
_BATCH_RECORDS = 100_000
_WAIT_MS = 1000
_MAX_EMPTY_POLLS = 30


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The load, after one load outside the clock."""
    _load(job.warming())
    yield lambda: _load(job)


def _load(job: Job) -> None:
    config = {"bootstrap.servers": job.bootstrap, "group.id": "bench", **_SETTINGS}
    manager = ConsumerManager(config=config, topics=[SourceTopic.from_earliest(job.topic)], batch_size=_BATCH_RECORDS)
    missing = job.records
    empty_polls = 0
    with OutputFile(job.folder / "all.parquet", MESSAGE_SCHEMA) as file:
        while missing:
            batch = manager.poll(timeout_ms=_WAIT_MS)
            missing -= batch.num_rows
            empty_polls = 0 if batch.num_rows else empty_polls + 1
            if empty_polls > _MAX_EMPTY_POLLS:
                raise TimeoutError(f"{missing} records are missing")
            if batch.num_rows:
                file.write(batch)
