"""Reads planned ranges of one 0.7 broker's partitions."""

from collections.abc import Iterable, Iterator, Sequence

from kafka_io.brokers.v07_connection import BrokerConnection07
from kafka_io.closing import Closing
from kafka_io.errors import KafkaIOError
from kafka_io.model import Broker
from kafka_io.reader.reader import PlannedRange, ReadSettings
from kafka_io.reader.unreadable import UnreadableRange
from kafka_io.reader.v07.partition import Partition07, fetch_firsts
from kafka_io.records.decoded_batch import DecodedBatch
from kafka_io.v07.messages import FetchAnswer07

_MAX_FETCHES = 1000  # in one MULTIFETCH, which counts them in 16 bits


class Reader07(Closing):
    """Reads from `broker`, over one connection."""

    def __init__(self, broker: Broker, read_settings: ReadSettings, *, cluster: str | None = None) -> None:
        self._broker = broker
        self._connection = BrokerConnection07(broker, read_settings.retry_policy, fetch_rate=read_settings.rate)
        self._read_settings = read_settings
        self._cluster = cluster

    def read(self, planned_ranges: Iterable[PlannedRange]) -> Iterator[Iterator[DecodedBatch]]:
        """The batches of each planned range, in order. One MULTIFETCH fetches small ranges together."""
        ranges = list(planned_ranges)
        for planned, first in zip(ranges, self._fetch_firsts(ranges), strict=True):
            yield self._partition(planned).read(
                planned.offsets.start, planned.offsets.stop, first=first, to_message=planned.to_message
            )

    def unreadable(self, planned: PlannedRange, offset: int) -> UnreadableRange:
        """The unreadable part of the range that begins at `offset`."""
        partition = self._partition(planned)
        # With `to_message` the range may end inside the message that cannot be read, so it ends with the log here.
        stop = partition.bounds().latest if planned.to_message else planned.offsets.stop
        return partition.unreadable(offset, stop)

    def serving(self, planned: PlannedRange) -> Broker | None:
        """The broker that the range is read from: the one that holds it."""
        del planned
        return self._broker

    def _fetch_firsts(self, ranges: Sequence[PlannedRange]) -> Iterable[FetchAnswer07 | None]:
        total_bytes = sum(planned.offsets.size for planned in ranges)
        if not 1 < len(ranges) <= _MAX_FETCHES or total_bytes > self._read_settings.sizes.fetch_bytes:
            return [None] * len(ranges)
        fetches = [(self._partition(planned), planned.offsets.start, planned.offsets.size) for planned in ranges]
        try:
            return fetch_firsts(self._connection, fetches)
        except KafkaIOError:
            return [None] * len(ranges)  # each range is then fetched by itself, and raises its own error

    def _partition(self, planned: PlannedRange) -> Partition07:
        return Partition07(
            connection=self._connection,
            topic=planned.topic,
            id=planned.offsets.partition,
            cluster=self._cluster,
            read_settings=self._read_settings,
        )

    def pause(self) -> None:
        """Release memory before a time without reads; connections stay open."""
        self._connection.pause()

    def resume(self) -> None:
        """Close what the broker has closed during a pause."""
        self._connection.resume()

    def close(self) -> None:
        """Close the connection; safe to call again."""
        self._connection.close()
