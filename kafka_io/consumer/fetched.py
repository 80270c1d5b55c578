"""Fetch positions and results: a piece of a partition's log, which is decoded while it is read."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from kafka_io.errors import Where
from kafka_io.model import BrokerPartition, TopicPartition
from kafka_io.records.decoded_batch import DecodedBatch

_MAX_FETCHES = 1000  # in one MULTIFETCH, which counts them in 16 bits
_NO_TIME = -1  # the timestampType of records without timestamps (message format 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumedMessage:
    """One message, and the offset from which to continue after it.

    In 0.7 `offset` is where the message starts. Messages that were compressed together share the offset of their
    wrapper, and `next_offset` is that same offset for all but the last of them, because only the whole wrapper can be
    read again [kafka-0.7: Compression].

    `timestamp_ms` is None if the message has none. Messages of 0.7 have no key, timestamp or headers.

        >>> with SimpleConsumer.open(address, generation=Generation.V07) as consumer:
        ...     [first, second] = consumer.fetch("clicks", 0, 0)
        >>> first == ConsumedMessage(topic="clicks", partition=first.partition, offset=0, next_offset=13, value=b"one")
        True
    """

    topic: str
    partition: BrokerPartition
    offset: int
    next_offset: int
    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPosition:
    """The offset of a partition to read from, and the maximum number of bytes.

    >>> position = FetchPosition(topic="clicks", partition=BrokerPartition(0, 0), offset=13)
    >>> with SimpleConsumer.open(address, generation=Generation.V07) as consumer:
    ...     [result] = consumer.multifetch([position])
    >>> [message.value for message in result]
    [b'two']
    """

    topic: str
    partition: BrokerPartition
    offset: int
    max_bytes: int = 1024 * 1024

    @classmethod
    def of(cls, topic_partition: TopicPartition, offset: int, max_bytes: int) -> Self:
        """The position in a partition that is given by its address."""
        return cls(
            topic=topic_partition.topic, partition=topic_partition.within_topic, offset=offset, max_bytes=max_bytes
        )

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition's address."""
        return TopicPartition.of(self.topic, self.partition)

    @property
    def where(self) -> Where:
        """The position as the context of errors."""
        return Where(topic=self.topic, partition=str(self.partition), offset=self.offset)


def split_into_requests(positions: Iterable[FetchPosition], *, max_bytes: int) -> Iterator[list[FetchPosition]]:
    """Split positions into what one request may ask for, in order.

    A request names each partition once. Together its positions ask for at most `max_bytes`; a single one may ask for
    more.
    """
    request: dict[tuple[str, BrokerPartition], FetchPosition] = {}
    size = 0
    for position in positions:
        partition = (position.topic, position.partition)
        is_full = size + position.max_bytes > max_bytes or len(request) == _MAX_FETCHES
        if request and (partition in request or is_full):
            yield list(request.values())
            request, size = {}, 0
        request[partition] = position
        size += position.max_bytes
    if request:
        yield list(request.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResult:
    """The whole messages in the answer to a fetch; iterate over it, or take them as Arrow batches.

    Args:
        position: the fetch that this answers.
        next_offset: the offset from which to continue; `position.offset` if the answer has no whole message.
        needed_bytes: 0, or the minimum `max_bytes` if the first message is larger than `position.max_bytes`.
        batches: decodes the messages into Arrow batches, one at a time. It raises WireError if the bytes are no
            messages, or if they decompress to more than the limits allow.

    Example:
        >>> with SimpleConsumer.open(address, generation=Generation.V07) as consumer:
        ...     fetched = consumer.fetch("clicks", 0, 0)
        ...     small = consumer.fetch("clicks", 0, 0, max_bytes=5)
        >>> [message.value for message in fetched], fetched.next_offset
        ([b'one', b'two'], 26)
        >>> list(small), small.next_offset, small.needed_bytes
        ([], 0, 13)
    """

    position: FetchPosition
    next_offset: int
    needed_bytes: int
    batches: Callable[[], Iterator[DecodedBatch]]

    def __iter__(self) -> Iterator[ConsumedMessage]:
        for decoded in self.batches():
            yield from consumed_messages(self.position.topic_partition, decoded)


def consumed_messages(partition: TopicPartition, decoded: DecodedBatch) -> Iterator[ConsumedMessage]:
    """One object for each message of a batch; batches of 0.7 have only offsets and values.

    Reading continues at the next row's offset. Inside a compressed message of 0.7 that is the same offset again.
    """
    batch = decoded.batch
    if "timestamp" in batch.schema.names:
        # As numbers: some are outside the range of datetime.
        index = batch.schema.get_field_index("timestamp")
        batch = batch.set_column(index, "timestamp", batch.column("timestamp").cast(pa.int64()))
    rows = batch.to_pylist()
    next_offsets = [row["offset"] for row in rows[1:]] + [decoded.next_offset]
    for row, next_offset in zip(rows, next_offsets, strict=True):
        yield ConsumedMessage(
            topic=partition.topic,
            partition=partition.within_topic,
            offset=row["offset"],
            next_offset=next_offset,
            value=row["value"],
            key=row.get("key"),
            timestamp_ms=None if row.get("timestampType", _NO_TIME) == _NO_TIME else row["timestamp"],
            headers=tuple((header["key"], header["value"]) for header in row.get("headers", ())),
        )
