"""What a fetch answers: one piece of a partition's log, which is decoded as it is read."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kafka_io.model import BrokerPartition
from kafka_io.records.columns import Decoded

_MOST_FETCHES = 1000  # in one MULTIFETCH, which counts them in 16 bits
_NO_TIME = -1  # as timestampType: format 0 has no times


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumed:
    """One message, and where to go on behind it.

    In 0.7 `offset` is where the message starts, and those that were compressed together share it. Behind each of
    these but the last one goes on at that same offset: what was compressed together is read together (facts, 5).

    `timestamp_ms` is None where there is none; 0.7 has no keys, times or headers either.

        >>> with SimpleConsumer.open(address, generation=Generation.V07) as consumer:
        ...     [first, second] = consumer.fetch("clicks", 0, 0)
        >>> first == Consumed(topic="clicks", partition=first.partition, offset=0, next_offset=13, value=b"one")
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
class FetchAt:
    """From which offset of a partition to read, and at most how many bytes.

    >>> asked = FetchAt(topic="clicks", partition=BrokerPartition(0, 0), offset=13)
    >>> with SimpleConsumer.open(address, generation=Generation.V07) as consumer:
    ...     [answer] = consumer.multifetch([asked])
    >>> [message.value for message in answer]
    [b'two']
    """

    topic: str
    partition: BrokerPartition
    offset: int
    max_bytes: int = 1024 * 1024


def requests_of(asked: Iterable[FetchAt], *, most_bytes: int) -> Iterator[list[FetchAt]]:
    """Cut into what one request may ask for: each partition once, and no more than `most_bytes` if it is several."""
    some: dict[tuple[str, BrokerPartition], FetchAt] = {}
    size = 0
    for one in asked:
        place = (one.topic, one.partition)
        if some and (place in some or size + one.max_bytes > most_bytes or len(some) == _MOST_FETCHES):
            yield list(some.values())
            some, size = {}, 0
        some[place] = one
        size += one.max_bytes
    if some:
        yield list(some.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The whole messages in the answer to `asked`; behind them one goes on at `next_offset`.

    Args:
        asked: what this answers.
        next_offset: `asked.offset` when there is no whole message.
        needed_bytes: 0, or what to ask for at least, when the first message is larger than `asked.max_bytes`.
        decode: the messages as batches.

    Example:
        >>> with SimpleConsumer.open(address, generation=Generation.V07) as consumer:
        ...     fetched = consumer.fetch("clicks", 0, 0)
        ...     small = consumer.fetch("clicks", 0, 0, max_bytes=5)
        >>> [message.value for message in fetched], fetched.next_offset
        ([b'one', b'two'], 26)
        >>> list(small), small.next_offset, small.needed_bytes
        ([], 0, 13)
    """

    asked: FetchAt
    next_offset: int
    needed_bytes: int
    decode: Callable[[], Iterator[Decoded]]

    def batches(self) -> Iterator[Decoded]:
        """The messages as Arrow batches, decoded one at a time.

        Raises:
            WireError: bytes that are no messages, or that decompress past the limits.
        """
        return self.decode()

    def __iter__(self) -> Iterator[Consumed]:
        for decoded in self.batches():
            yield from self._messages(decoded)

    def _messages(self, decoded: Decoded) -> Iterator[Consumed]:
        rows = _rows(decoded.batch)
        # Behind a message comes the next row's: its own once more inside a compressed message of 0.7.
        followers = [row["offset"] for row in rows[1:]] + [decoded.next_offset]
        for row, next_offset in zip(rows, followers, strict=True):
            yield Consumed(topic=self.asked.topic, partition=self.asked.partition, next_offset=next_offset, **row)


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """What messages have of their own; those of 0.7 are a value at an offset."""
    columns: dict[str, list[Any]] = {name: batch.column(name).to_pylist() for name in ("offset", "value")}
    if "key" in batch.schema.names:
        # As numbers: there are times that datetime does not reach.
        times = batch.column("timestamp").cast(pa.int64()).to_pylist()
        kinds = batch.column("timestampType").to_pylist()
        columns |= {
            "key": batch.column("key").to_pylist(),
            "timestamp_ms": [time if kind != _NO_TIME else None for time, kind in zip(times, kinds, strict=True)],
            "headers": [
                tuple((header["key"], header["value"]) for header in headers)
                for headers in batch.column("headers").to_pylist()
            ],
        }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
