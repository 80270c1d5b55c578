"""The fetcher of one stream: a thread that fetches the stream's partitions, all those of a broker in one request."""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kafka_io.brokers.retry import MIN_PAUSE_S
from kafka_io.consumer.connector.chunk_queue import Chunk, ChunkQueue
from kafka_io.consumer.connector.options import ConnectorOptions
from kafka_io.consumer.connector.stream_partition import StreamPartition
from kafka_io.consumer.fetched import FetchPosition, FetchResult
from kafka_io.consumer.simple import SimpleConsumer
from kafka_io.errors import (
    AuthorizationFailed,
    BrokerError,
    Corrupt,
    KafkaIOError,
    LogShort,
    NetworkError,
    OffsetOutOfRange,
    PastEnd,
    RegistryError,
    WireError,
)

_LOG = logging.getLogger(__name__)
_RESETS = {"smallest": SimpleConsumer.EARLIEST_TIME, "largest": SimpleConsumer.LATEST_TIME}
_TEMPORARY = (NetworkError, RegistryError, BrokerError, LogShort, PastEnd)


@dataclass(eq=False)
class ConnectorFetcher:
    """Fills a stream's queue from the start of its `thread` to `stop`; `queue.put` waits while the queue is full.

    Args:
        open_consumer: called by the fetcher's thread, because a consumer belongs to one thread.
        options: the settings of the connector.
        on_reset: called when a partition continues at another offset than the group had committed.
    """

    open_consumer: Callable[[], SimpleConsumer]
    options: ConnectorOptions
    on_reset: Callable[[StreamPartition], None]

    def __post_init__(self) -> None:
        self.queue = ChunkQueue(self.options.queued_max_chunks)
        self._owned: tuple[StreamPartition, ...] = ()
        self._wake = threading.Event()
        self._stopping = False
        # A daemon thread: it may wait for a broker when the process ends.
        self.thread = threading.Thread(target=self._run, name="penstock-fetcher", daemon=True)

    def assign(self, owned_partitions: Iterable[StreamPartition]) -> None:
        """Fetch for these partitions from now on, and for no others."""
        self._owned = tuple(owned_partitions)
        self.queue.drop_revoked()
        self._wake.set()

    def stop(self) -> None:
        """Let the thread end soon, and wake everyone who waits for the stream."""
        self._stopping = True
        self.queue.close()
        self._wake.set()

    def _run(self) -> None:
        with self.open_consumer() as consumer:
            while not self._stopping:
                # Cleared before the partitions are read: an `assign` from here on sets it again and ends the wait
                # below.
                self._wake.clear()
                due = [owned for owned in self._owned if owned.is_due]
                self._fetch(consumer, due)
                if not due:
                    self._wake.wait(self.options.fetch_backoff_ms / 1000)

    def _fetch(self, consumer: SimpleConsumer, due: Sequence[StreamPartition]) -> None:
        fetches: list[tuple[StreamPartition, int, FetchPosition]] = []
        for owned in due:
            epoch, offset = owned.fetch_offset()
            if offset is None:
                self._reset(consumer, owned)
            else:
                max_bytes = owned.fetch_bytes or self.options.fetch_bytes
                fetches.append((owned, epoch, FetchPosition.of(owned.topic_partition, offset, max_bytes)))
        results = consumer.multifetch(position for _, _, position in fetches)
        for (owned, epoch, _), result in zip(fetches, results, strict=True):
            if isinstance(result, OffsetOutOfRange):
                _LOG.warning("the group's offset is not in the log: %s", result)
                self._reset(consumer, owned)
            elif isinstance(result, KafkaIOError):
                self._handle_error(owned, epoch, result)
            else:
                self._handle_result(owned, epoch, result)

    def _reset(self, consumer: SimpleConsumer, owned: StreamPartition) -> None:
        """Continue at the smallest or largest offset.

        The new offset is committed at once, as genuine consumers do [kafka-0.7: Consumer registry].
        """
        reset, partition = self.options.auto_offset_reset, owned.topic_partition
        try:
            offsets = consumer.get_offsets_before(partition.topic, partition.within_topic, _RESETS[reset])
            if not offsets:
                raise Corrupt(f"the broker did not answer with the {reset} offset")
        except KafkaIOError as error:
            self._handle_error(owned, owned.fetch_offset()[0], error)
            return
        _LOG.info("partition %s starts at its %s offset %d", partition, reset, offsets[0])
        owned.reset(offsets[0])
        # If the log does not hold even that offset, the next fetch resets again: the pause bounds the rate of requests.
        owned.pause(MIN_PAUSE_S)
        self.on_reset(owned)

    def _handle_result(self, owned: StreamPartition, epoch: int, result: FetchResult) -> None:
        owned.last_error = None
        if result.next_offset > result.position.offset:
            owned.fetch_bytes = None
            if owned.advance_fetched(epoch, result.next_offset):
                self.queue.put(Chunk(owned, epoch, result))
        elif not result.needed_bytes:
            owned.pause(self.options.fetch_backoff_ms / 1000)
        else:
            try:
                sizes, position = self.options.read_settings.sizes, result.position
                owned.fetch_bytes = sizes.next_larger(position.max_bytes, result.needed_bytes, position.where)
            except WireError as error:
                self._handle_error(owned, epoch, error)

    def _handle_error(self, owned: StreamPartition, epoch: int, error: KafkaIOError) -> None:
        """Pause the partition; an error that is not temporary is also raised by the stream."""
        if isinstance(error, _TEMPORARY) and not isinstance(error, AuthorizationFailed):
            owned.pause(self.options.fetch_backoff_ms / 1000)
            if owned.last_error != error.reason:  # each error is logged once, however often it is repeated
                _LOG.warning("a fetch failed and is retried: %s", error)
            owned.last_error = error.reason
        else:
            owned.pause(float("inf"))  # until the stream has raised the error
            self.queue.put(Chunk(owned, epoch, error))
