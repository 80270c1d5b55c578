"""The simple consumer of every generation: seed 003, "Low-level API". It keeps no state: who uses it keeps offsets."""

from collections.abc import Iterable
from functools import partial
from typing import ClassVar, Protocol, Self

from kafka_io.client.fetched import FetchAt, Fetched
from kafka_io.client.modern.bootstrap import parse_bootstrap
from kafka_io.client.modern.reader import open_brokers
from kafka_io.client.modern.simple import ModernFetching
from kafka_io.client.reading import Reading
from kafka_io.client.v07.simple import Fetching07, at_any
from kafka_io.closing import Closing
from kafka_io.errors import KafkaIOError, Unsupported
from kafka_io.messages.list_offsets import EARLIEST_TIME, LATEST_TIME
from kafka_io.model import BrokerPartition, Generation
from kafka_io.net.security import PLAINTEXT, Security

_FETCH_BYTES = 1024 * 1024
_MAX_WAIT_MS = 100


class Fetching(Protocol):
    """How one generation fetches."""

    def multifetch(self, asked: list[FetchAt]) -> list[Fetched | KafkaIOError]:
        """An answer or an error for each, in order."""
        ...

    def offsets_before(self, topic: str, partition: BrokerPartition, time_ms: int, most: int) -> tuple[int, ...]:
        """See SimpleConsumer.get_offsets_before."""
        ...

    def close(self) -> None:
        """End all connections; safe to call again."""
        ...


class SimpleConsumer(Closing):
    """Fetches pieces of partitions from the offsets it is told. A context manager; one thread uses it.

    A partition is its number; of 0.7 it may also be a BrokerPartition.

        >>> with SimpleConsumer.open(address, generation=Generation.V07) as consumer:
        ...     [message, *_] = consumer.fetch("clicks", 0, offset=0)
        ...     earliest = consumer.get_offsets_before("clicks", 0, consumer.EARLIEST_TIME)
        >>> message.value, message.next_offset, earliest
        (b'one', 13, [0])
    """

    EARLIEST_TIME: ClassVar[int] = EARLIEST_TIME
    LATEST_TIME: ClassVar[int] = LATEST_TIME

    def __init__(self, fetching: Fetching) -> None:
        self._fetching = fetching

    @classmethod
    def open(
        cls,
        bootstrap: str,
        *,
        generation: Generation | None = None,
        reading: Reading | None = None,
        max_wait_ms: int = _MAX_WAIT_MS,
        security: Security = PLAINTEXT,
    ) -> Self:
        """Of 0.7 the one broker at `host:port`, whose generation must be told; later the brokers that these lead to.

        Nothing is connected yet. `max_wait_ms` is how long a broker from 0.8 on waits for records where there are none.

        Raises:
            ValueError: an address that is none, or several of 0.7.
            Unsupported: security is asked of a broker of 0.7.
        """
        reading = reading or Reading()
        brokers = parse_bootstrap(bootstrap)
        if generation is not Generation.V07:
            opening = partial(open_brokers, brokers, reading, cluster=None, generation=generation, security=security)
            return cls(ModernFetching(opening, reading, max_wait_ms=max_wait_ms))
        if len(brokers) != 1:
            raise ValueError("a simple consumer of 0.7 talks to one broker")
        if security != PLAINTEXT:
            raise Unsupported("0.7 has neither TLS nor SASL")
        return cls(Fetching07(at_any(brokers[0]), reading))

    def fetch(
        self, topic: str, partition: BrokerPartition | int, offset: int, *, max_bytes: int = _FETCH_BYTES
    ) -> Fetched:
        """The whole messages in up to `max_bytes` from `offset` on; none at the log's end.

        Before 0.10.1 there is none either when the first one is larger: `needed_bytes` tells. Later brokers answer
        with that one all the same.

        Raises:
            OffsetOutOfRange: the broker's log does not hold the offset.
            BrokerError: the broker refused.
            NetworkError: it could not be reached, also after all retries.
            WireError: what it sent is no answer.
            ValueError: a negative offset, or less than a byte.
        """
        [found] = self.multifetch([FetchAt(topic=topic, partition=_id(partition), offset=offset, max_bytes=max_bytes)])
        if isinstance(found, KafkaIOError):
            raise found
        return found

    def multifetch(self, asked: Iterable[FetchAt]) -> list[Fetched | KafkaIOError]:
        """What `fetch` tells of each, in order, with one request to each broker; an error hides only what it concerns.

        Raises:
            ValueError: a negative offset, or less than a byte.
        """
        wanted = list(asked)
        for one in wanted:
            if one.offset < 0 or one.max_bytes < 1:  # 0.7 answers negative sizes with a broken stream (facts, 2)
                raise ValueError(f"a fetch is from offset 0 on, and of 1 byte or more, not {one}")
        return self._fetching.multifetch(wanted)

    def get_offsets_before(
        self, topic: str, partition: BrokerPartition | int, time_ms: int, *, max_offsets: int = 1
    ) -> list[int]:
        """Up to `max_offsets` offsets at which one can begin to read what was written before a time; newest first.

        EARLIEST_TIME and LATEST_TIME stand for the two ends of the log. Before 0.10 these are starts of segments that
        were last written to by then. Later it is the first record that is not older, or else the end of the log.

        Raises:
            BrokerError: the broker refused.
            NetworkError: no answer; a broker of 0.7 closes the connection when it has no such partition.
            ValueError: less than one offset.
        """
        if max_offsets < 1:  # 0.7 closes the connection (facts, 3)
            raise ValueError(f"max_offsets is 1 or more, not {max_offsets}")
        return list(self._fetching.offsets_before(topic, _id(partition), time_ms, max_offsets))

    def close(self) -> None:
        """End all connections; safe to call again."""
        self._fetching.close()


def _id(partition: BrokerPartition | int) -> BrokerPartition:
    return partition if isinstance(partition, BrokerPartition) else BrokerPartition(None, partition)
