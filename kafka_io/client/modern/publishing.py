"""Publishing from 0.8 on: a batch to a partition by turns, in the newest format that its leader keeps.

Every batch is acknowledged by all replicas in sync before the next is sent. It is not numbered: where an answer is
lost the batch is sent again, and may be there twice.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle

from kafka_io.client.batched import batched
from kafka_io.client.modern.brokers import Brokers, Leader
from kafka_io.compression import CODEC_NUMBERS
from kafka_io.error_codes import MODERN, check
from kafka_io.errors import Corrupt, LeaderMoved, Unsupported, Where
from kafka_io.messages.produce import (
    BY_ID_SINCE,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceTopic,
)
from kafka_io.records.build import Record, log_messages, record_batch
from kafka_io.registry.paths import check_topic_name
from kafka_io.wire.types import NULL_UUID

_ALL_IN_SYNC = -1
_TIMEOUT_MS = 30_000
_TIMES_SINCE = 2  # of Produce: message format 1
_BATCHES_SINCE = 3
_ZSTD_SINCE = 7  # KIP-110
_UNKNOWN_TOPIC = 3


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
    yield from cycle(_partitions(brokers, topic))


def _partitions(brokers: Brokers, topic: str) -> list[int]:
    """The topic's partitions; a topic that is not there is asked for."""

    def attempt() -> list[int]:
        brokers.forget(topic)
        found = brokers.topic(topic)
        if found is None or not found.partitions:
            brokers.make(topic)
            raise LeaderMoved("the brokers have no such topic, and have not made it yet", code=_UNKNOWN_TOPIC)
        return sorted(one.partition_index for one in found.partitions)

    return brokers.patiently(attempt)


def _sending(topic: str, partition: int, values: Sequence[bytes], codec: int) -> Callable[[Leader], None]:
    """What is to be done with the partition's leader: write the values, and have all replicas confirm them."""
    now_ms = time.time_ns() // 1_000_000
    records = [Record(offset=number, timestamp=now_ms, value=value) for number, value in enumerate(values)]

    def send(leader: Leader) -> None:
        most = BY_ID_SINCE - 1 if leader.topic_id == NULL_UUID else None
        version = leader.link.versions.pick(ProduceRequest.API, most=most)
        part = ProducePartition(index=partition, records=_entries(records, codec, version))
        request = ProduceRequest(
            acks=_ALL_IN_SYNC,
            timeout_ms=_TIMEOUT_MS,
            topic_data=(ProduceTopic(name=topic, topic_id=leader.topic_id, partition_data=(part,)),),
        )
        answer = leader.link.request(request, most=most)
        check(_of(partition, [one for each in answer.responses for one in each.partition_responses]), Where(), MODERN)

    return send


def _entries(records: Sequence[Record], codec: int, version: int) -> bytes:
    """The records in the format that belongs to a version of Produce."""
    if codec == CODEC_NUMBERS["zstd"] and version < _ZSTD_SINCE:
        raise Unsupported("brokers before 2.1 do not know zstd")
    if version >= _BATCHES_SINCE:
        return record_batch(records, codec=codec)
    return log_messages(records, magic=int(version >= _TIMES_SINCE), codec=codec)


def _of(partition: int, answers: Sequence[ProducePartitionResponse]) -> int:
    for one in answers:
        if one.index == partition:
            return one.error_code
    raise Corrupt("an answer without the partition that was written to")
