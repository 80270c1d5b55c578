"""Publishing from 0.8 on: a batch to a partition by turns, in the newest format that its leader keeps.

Every batch is acknowledged by all replicas in sync before the next is sent. It is not numbered: where an answer is
lost the batch is sent again, and may be there twice.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle

from kafka_io.client.batched import batched
from kafka_io.client.modern.brokers import Brokers, Leader
from kafka_io.client.modern.writing import Batch, Writing, partitions_of, write
from kafka_io.compression import CODEC_NUMBERS
from kafka_io.errors import KafkaIOError
from kafka_io.records.build import Record
from kafka_io.registry.paths import check_topic_name


def publish(
    brokers: Brokers,
    topic: str,
    payloads: Iterable[bytes],
    *,
    codecs: Sequence[str] = ("none",),
    batch: int = 500,
    on_sent: Callable[[int], None] = lambda _count: None,
) -> int:
    """Send all payloads as values of records without keys, spread over the topic's partitions; how many.

    Args:
        brokers: of the cluster.
        topic: it need not exist, where brokers make topics by themselves.
        payloads: a value each.
        codecs: `none`, `gzip`, `snappy`, `lz4` or `zstd`, by turns of requests.
        batch: records in one request.
        on_sent: told how many records each request held.

    Raises:
        NodeMalformed: no topic may have this name.
        LeaderMoved: the topic is not there and is not made, or a partition has no leader.
        BrokerError: the broker refused a batch, as one that is larger than it takes.
        Unsupported: brokers of this version do not know the codec.
        NetworkError: the brokers cannot be reached, also after all retries.
    """
    check_topic_name(topic)
    count = 0
    rounds = zip(batched(payloads, batch), cycle(codecs), _turns(brokers, topic), strict=False)
    for values, codec, partition in rounds:
        brokers.on_leader(topic, partition, _sending(topic, partition, values, CODEC_NUMBERS[codec]))
        count += len(values)
        on_sent(len(values))
    return count


def _turns(brokers: Brokers, topic: str) -> Iterator[int]:
    """The topic's partitions, again and again. They are found when the first is asked for: nothing makes no topic."""
    yield from cycle(partitions_of(brokers, topic))


def _sending(topic: str, partition: int, values: Sequence[bytes], codec: int) -> Callable[[Leader], None]:
    """What is to be done with the partition's leader: write the values, and have all replicas confirm them."""
    now_ms = time.time_ns() // 1_000_000
    place = (topic, partition)
    records = [Record(offset=number, timestamp=now_ms, value=value) for number, value in enumerate(values)]

    def send(leader: Leader) -> None:
        found = write(leader.link, {place: leader}, {place: Batch(records=records, codec=codec)}, Writing())[place]
        if isinstance(found, KafkaIOError):
            raise found

    return send
