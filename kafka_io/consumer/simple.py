"""The simple consumer of every generation [kafka-0.7: Rebalancing]. It keeps no offsets: its user does."""

from collections.abc import Iterable
from typing import ClassVar, Self

from kafka_io.brokers.bootstrap import parse_bootstrap
from kafka_io.closing import Closing
from kafka_io.consumer.fetched import FetchPosition, FetchResult
from kafka_io.consumer.modern_simple import ModernPartitionFetcher
from kafka_io.consumer.v07_simple import PartitionFetcher07
from kafka_io.errors import KafkaIOError, Unsupported, value_of
from kafka_io.messages.list_offsets import EARLIEST_TIME, LATEST_TIME
from kafka_io.model import BrokerPartition, Generation
from kafka_io.net.security import PLAINTEXT, Security
from kafka_io.reader.reader import ReadSettings
from kafka_io.reader.source import Source

_FETCH_BYTES = 1024 * 1024
_MAX_WAIT_MS = 100


class SimpleConsumer(Closing):
    """Fetches pieces of partitions from given offsets. A context manager; one thread uses it.

    A partition is named by its number; in 0.7 also by a BrokerPartition.

        >>> with SimpleConsumer.open(address, generation=Generation.V07) as consumer:
        ...     [message, *_] = consumer.fetch("clicks", 0, offset=0)
        ...     earliest = consumer.get_offsets_before("clicks", 0, consumer.EARLIEST_TIME)
        >>> message.value, message.next_offset, earliest
        (b'one', 13, [0])
    """

    EARLIEST_TIME: ClassVar[int] = EARLIEST_TIME
    LATEST_TIME: ClassVar[int] = LATEST_TIME

    def __init__(self, fetcher: ModernPartitionFetcher | PartitionFetcher07) -> None:
        self._fetcher = fetcher

    @classmethod
    def open(
        cls,
        bootstrap: str,
        *,
        generation: Generation | None = None,
        read_settings: ReadSettings | None = None,
        max_wait_ms: int = _MAX_WAIT_MS,
        security: Security = PLAINTEXT,
    ) -> Self:
        """Open a consumer; it connects when it is first used.

        Args:
            bootstrap: `host:port[,host:port]`. In 0.7 the address of the one broker to read from.
            generation: required for 0.7; None detects later generations.
            read_settings: caps and retries.
            max_wait_ms: how long a broker from 0.8 on waits for records when there are none.
            security: TLS and SASL, from 0.9 on.

        Raises:
            ValueError: an address is not valid, or there are several for 0.7.
            Unsupported: security for a broker of 0.7.
        """
        read_settings = read_settings or ReadSettings()
        brokers = parse_bootstrap(bootstrap)
        if generation is not Generation.V07:
            source = Source(
                cluster=None,
                generation=generation or Generation.MODERN,
                brokers=brokers,
                security=security,
                read_settings=read_settings,
            )
            return cls(ModernPartitionFetcher(source.connect, read_settings, max_wait_ms=max_wait_ms))
        if len(brokers) != 1:
            raise ValueError(f"a simple consumer of 0.7 reads from one broker: give one address, not {bootstrap!r}")
        if security != PLAINTEXT:
            raise Unsupported("0.7 has neither TLS nor SASL: leave out `security`")
        return cls(PartitionFetcher07(lambda _partition: brokers[0], read_settings))

    def fetch(
        self, topic: str, partition: BrokerPartition | int, offset: int, *, max_bytes: int = _FETCH_BYTES
    ) -> FetchResult:
        """The whole messages in up to `max_bytes` from `offset` on; none at the end of the log.

        If the first message is larger than `max_bytes`, brokers before 0.10.1 return none, and `needed_bytes` is the
        minimum to ask for. Later brokers return that message in spite of the limit.

        Raises:
            OffsetOutOfRange: the broker's log does not hold the offset.
            BrokerError: the broker refused.
            NetworkError: the broker could not be reached, also after all retries.
            WireError: the bytes received are no valid answer.
            ValueError: a negative offset, or `max_bytes` below 1.
        """
        position = FetchPosition(topic=topic, partition=_as_partition(partition), offset=offset, max_bytes=max_bytes)
        return value_of(self.multifetch([position])[0])

    def multifetch(self, positions: Iterable[FetchPosition]) -> list[FetchResult | KafkaIOError]:
        """The result of `fetch` for each position, in order, with one request to each broker.

        An error replaces only the results that it concerns.

        Raises:
            ValueError: a negative offset, or `max_bytes` below 1.
        """
        checked = list(positions)
        for position in checked:
            # 0.7 answers negative sizes with a broken stream [kafka-0.7: Fetch].
            if position.offset < 0 or position.max_bytes < 1:
                raise ValueError(f"a fetch needs an offset of at least 0 and max_bytes of at least 1: {position}")
        return self._fetcher.multifetch(checked)

    def get_offsets_before(
        self, topic: str, partition: BrokerPartition | int, time_ms: int, *, max_offsets: int = 1
    ) -> list[int]:
        """Up to `max_offsets` offsets from which to read what was written before a time; the newest first.

        EARLIEST_TIME and LATEST_TIME stand for the two ends of the log. Before 0.10 the offsets are the starts of
        segments that were last written to by that time. Later it is the first record that is not older than the time,
        or the end of the log if all records are older.

        Raises:
            BrokerError: the broker refused.
            NetworkError: no answer; a broker of 0.7 closes the connection when it has no such partition.
            ValueError: `max_offsets` below 1.
        """
        if max_offsets < 1:  # 0.7 closes the connection [kafka-0.7: Errors]
            raise ValueError(f"max_offsets must be at least 1, not {max_offsets}")
        return list(self._fetcher.offsets_before(topic, _as_partition(partition), time_ms, max_offsets))

    def close(self) -> None:
        """End all connections; safe to call again."""
        self._fetcher.close()


def _as_partition(partition: BrokerPartition | int) -> BrokerPartition:
    return partition if isinstance(partition, BrokerPartition) else BrokerPartition(None, partition)
