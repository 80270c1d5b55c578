"""A stream of messages: what one thread of a consumer iterates over."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from kafka_io.client.connector.claim import Claim
from kafka_io.client.connector.handover import Chunk, Handover
from kafka_io.client.connector.options import Options
from kafka_io.client.fetched import Consumed
from kafka_io.errors import KafkaIOError


@dataclass(frozen=True, slots=True)
class _Open:
    """A chunk that is being handed out, and its messages that are left."""

    chunk: Chunk
    next_offset: int
    messages: Iterator[Consumed]


class MessageStream(Iterator[Consumed]):
    """The messages of the partitions that this stream owns at the time, those of each partition in order.

    An iterator that ends at `consumer_timeout_ms` without a message, and when the connector is shut down; asked again
    it goes on behind the last message. One thread uses it.

    A message may come again, here or in another consumer of the group, when its partition changes hands before its
    offset is committed. A message counts as done when the next one is asked for: until then only `commit_offsets` and
    `shutdown` commit it.

        >>> with ConsumerConnector.open(zookeeper, "readers", consumer_timeout_ms=10_000) as connector:
        ...     [stream] = connector.create_message_streams({"clicks": 1})["clicks"]
        ...     first = next(stream)
        >>> first.topic, str(first.partition), first.offset, first.value
        ('clicks', '0-0', 0, b'one')

    Raises:
        KafkaIOError: from `next`, in place of messages that cannot be read. The next one tries again.
    """

    def __init__(self, handover: Handover, options: Options) -> None:
        self._handover = handover
        self._options = options
        self._open: _Open | None = None
        self._last: Claim | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Consumed:
        if self._last is not None:
            self._last.settle()
        timeout_ms = self._options.consumer_timeout_ms
        deadline = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        while True:
            if self._open is None:
                chunk = self._handover.take(deadline)
                if chunk is None:
                    raise StopIteration
                self._begin(chunk)
            else:
                message = self._advance(self._open)
                if message is not None:
                    return message

    def _begin(self, chunk: Chunk) -> None:
        if isinstance(chunk.fetched, KafkaIOError):
            self._raise(chunk, chunk.fetched)
        else:
            self._open = _Open(chunk, chunk.fetched.next_offset, iter(chunk.fetched))

    def _advance(self, open_: _Open) -> Consumed | None:
        """The chunk's next message; None when it has no more, or counts no more."""
        claim, life = open_.chunk.claim, open_.chunk.life
        try:
            message = next(open_.messages, None)
        except KafkaIOError as error:
            self._open = None
            self._raise(open_.chunk, error)
        if message is not None and claim.hand_out(life, message.next_offset):
            self._last = claim
            return message
        self._open = None
        if message is None and claim.hand_out(life, open_.next_offset):  # there may be offsets without messages
            claim.settle()
        return None

    def _raise(self, chunk: Chunk, error: KafkaIOError) -> None:
        if chunk.claim.revoked:
            return
        chunk.claim.fetch_again()
        chunk.claim.rest(self._options.fetch_backoff_ms / 1000)
        raise error
