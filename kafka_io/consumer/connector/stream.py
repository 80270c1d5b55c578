"""A stream of messages: one thread of a consumer iterates over it."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from kafka_io.consumer.connector.chunk_queue import Chunk, ChunkQueue
from kafka_io.consumer.connector.claim import PartitionClaim
from kafka_io.consumer.connector.options import ConnectorOptions
from kafka_io.consumer.fetched import ConsumedMessage
from kafka_io.errors import KafkaIOError


@dataclass(frozen=True, slots=True)
class _OpenChunk:
    """A chunk that is being delivered, and its remaining messages."""

    chunk: Chunk
    next_offset: int
    messages: Iterator[ConsumedMessage]


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
        self._open: _OpenChunk | None = None
        self._last_claim: PartitionClaim | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumedMessage:
        if self._last_claim is not None:
            self._last_claim.mark_processed()
        timeout_ms = self._options.consumer_timeout_ms
        deadline_s = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        while True:
            if self._open is None:
                chunk = self._queue.take(deadline_s)
                if chunk is None:
                    raise StopIteration
                self._begin(chunk)
            else:
                message = self._next_message(self._open)
                if message is not None:
                    return message

    def _begin(self, chunk: Chunk) -> None:
        if isinstance(chunk.result, KafkaIOError):
            self._raise(chunk, chunk.result)
        else:
            self._open = _OpenChunk(chunk, chunk.result.next_offset, iter(chunk.result))

    def _next_message(self, open_chunk: _OpenChunk) -> ConsumedMessage | None:
        """The chunk's next message; None if there are no more, or the chunk must not be delivered any longer."""
        claim, epoch = open_chunk.chunk.claim, open_chunk.chunk.epoch
        try:
            message = next(open_chunk.messages, None)
        except KafkaIOError as error:
            self._open = None
            self._raise(open_chunk.chunk, error)
        if message is not None and claim.deliver(epoch, message.next_offset):
            self._last_claim = claim
            return message
        self._open = None
        # The last offsets of a chunk may have no message, for example in a compacted log: they are processed too.
        if message is None and claim.deliver(epoch, open_chunk.next_offset):
            claim.mark_processed()
        return None

    def _raise(self, chunk: Chunk, error: KafkaIOError) -> None:
        """Raise the error unless the partition belongs to another consumer now; fetch the messages again later."""
        if chunk.claim.revoked:
            return
        chunk.claim.rewind()
        chunk.claim.pause(self._options.fetch_backoff_ms / 1000)
        raise error
