"""A stream of messages: one thread of a consumer iterates over it."""

import time
from collections.abc import Iterator
from typing import Self

from kafka_io.consumer.connector.chunk_queue import Chunk, ChunkQueue
from kafka_io.consumer.connector.options import ConnectorOptions
from kafka_io.consumer.fetched import ConsumedMessage
from kafka_io.errors import KafkaIOError


class MessageStream(Iterator[ConsumedMessage]):
    """The messages of the partitions that this stream currently owns, in order within each partition.

    The iteration ends after `consumer_timeout_ms` without a message, and when the connector is shut down. After a
    timeout it may be continued. One thread uses it.

    A message may come again, here or in another consumer of the group, if its partition changes its owner before the
    offset is committed. A message counts as processed when the next one is requested. Before that, only
    `commit_offsets` and `shutdown` commit it.

        >>> with ConsumerConnector.open(zookeeper, "readers", consumer_timeout_ms=10_000) as connector:
        ...     [stream] = connector.create_message_streams({"clicks": 1})["clicks"]
        ...     first = next(stream)
        >>> first.topic, str(first.partition), first.offset, first.value
        ('clicks', '0-0', 0, b'one')

    Raises:
        KafkaIOError: from `next`, in place of messages that cannot be read. The following `next` tries again.
    """

    def __init__(self, queue: ChunkQueue, options: ConnectorOptions) -> None:
        self._queue = queue
        self._options = options
        self._messages: Iterator[ConsumedMessage] = iter(())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumedMessage:
        timeout_ms = self._options.consumer_timeout_ms
        deadline_s = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        while (message := next(self._messages, None)) is None:
            chunk = self._queue.take(deadline_s)
            if chunk is None:
                raise StopIteration
            self._messages = self._deliver(chunk)
        return message

    def _deliver(self, chunk: Chunk) -> Iterator[ConsumedMessage]:
        """The messages of a chunk. It ends early when the chunk must not be delivered any longer.

        This generator continues when the next message is requested: at that moment the last one is processed.
        """
        owned = chunk.partition
        try:
            if isinstance(chunk.result, KafkaIOError):
                raise chunk.result
            for message in chunk.result:
                if not owned.deliver(chunk.epoch, message.next_offset):
                    return
                yield message
                owned.mark_processed()
        except KafkaIOError:
            if owned.revoked:  # the partition belongs to another consumer now
                return
            owned.rewind()
            owned.pause(self._options.fetch_backoff_ms / 1000)
            raise
        # The last offsets of a chunk may have no message, for example in a compacted log: they are processed too.
        if owned.deliver(chunk.epoch, chunk.result.next_offset):
            owned.mark_processed()
