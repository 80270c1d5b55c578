"""confluent-kafka: librdkafka. It creates a Python object per message.

The settings keep it from sleeping: by default librdkafka waits one second before it fetches again after its queue was
full. `consume` waits for its full timeout if it is asked for more messages than the topic still has.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import methodcaller
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from tests.bench.cases import PARTITIONS, Job
from tests.bench.files import PartitionFiles, Rows, disable_cycle_collector

SETTINGS = {
    "enable.auto.commit": False,
    "fetch.queue.backoff.ms": 2,
    "fetch.wait.max.ms": 10,
    "queued.min.messages": 200_000,
    "queued.max.messages.kbytes": 128 * 1024,
    "fetch.message.max.bytes": 4 * 1024 * 1024,
}
_CONSUME_MESSAGES = 2_000  # few enough to stay in the processor's cache
_WAIT_S = 30.0


@contextmanager
def ready(job: Job) -> Iterator[Callable[[], None]]:
    """The load, after one load outside the clock."""
    disable_cycle_collector()
    _load(job.warming())
    yield lambda: _load(job)


def _load(job: Job) -> None:
    with PartitionFiles(job.folder, job.topic) as files:
        for partition, messages in consumed(job):
            files.write(partition, rows(messages))


def consumed(job: Job) -> Iterator[tuple[int, Sequence[Any]]]:
    """All messages of the topic: a partition, and some of its messages.

    Raises:
        TimeoutError: records are missing.
    """
    consumer = Consumer({"bootstrap.servers": job.bootstrap, "group.id": "bench", **SETTINGS})
    consumer.assign([TopicPartition(job.topic, partition, 0) for partition in range(PARTITIONS)])
    missing = job.records
    while missing:
        messages: list[Any] = consumer.consume(min(missing, _CONSUME_MESSAGES), _WAIT_S)
        if not messages:
            raise TimeoutError(f"{missing} records are missing")
        missing -= len(messages)
        for partition, group in groupby(messages, methodcaller("partition")):
            yield partition, list(group)
    consumer.close()


def rows(messages: Sequence[Any]) -> Rows:
    """The columns of messages, with their values as bytes."""
    times = [message.timestamp() for message in messages]
    return Rows(
        keys=[message.key() for message in messages],
        values=[message.value() for message in messages],
        offsets=[message.offset() for message in messages],
        timestamps=[time for _, time in times],
        types=[timestamp_type - 1 for timestamp_type, _ in times],  # librdkafka counts from 1
        headers=[message.headers() for message in messages],
    )
