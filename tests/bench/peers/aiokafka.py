"""aiokafka: an asyncio client with a parser in Cython. It creates a Python object per record."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition

from tests.bench.cases import PARTITIONS, Job
from tests.bench.files import PartitionFiles, Rows, disable_cycle_collector

_FETCH_BYTES = 1024 * 1024
_WAIT_MS = 30_000


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The load, after one load outside the clock."""
    disable_cycle_collector()
    asyncio.run(_load(job.warming()))
    yield lambda: asyncio.run(_load(job))


async def _load(job: Job) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=job.bootstrap,
        enable_auto_commit=False,
        max_partition_fetch_bytes=_FETCH_BYTES,
        fetch_max_wait_ms=10,
    )
    partitions = [TopicPartition(job.topic, number) for number in range(PARTITIONS)]
    consumer.assign(partitions)
    await consumer.start()
    await consumer.seek_to_beginning(*partitions)
    missing = job.records
    with PartitionFiles(job.folder, job.topic) as files:
        while missing:
            batches = await consumer.getmany(timeout_ms=_WAIT_MS)
            if not batches:
                raise TimeoutError(f"{missing} records are missing")
            for partition, records in batches.items():
                missing -= len(records)
                rows = Rows(
                    keys=[record.key for record in records],
                    values=[record.value for record in records],
                    offsets=[record.offset for record in records],
                    timestamps=[record.timestamp for record in records],
                    types=[record.timestamp_type for record in records],
                    headers=[record.headers for record in records],
                )
                files.write(partition.partition, rows)
    await consumer.stop()
