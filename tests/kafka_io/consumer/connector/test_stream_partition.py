"""A stream's partition delivers no messages of an old epoch, and has the offset to commit."""

import threading
import time

from kafka_io.consumer.connector.chunk_queue import Chunk, ChunkQueue
from kafka_io.consumer.connector.stream_partition import StreamPartition
from kafka_io.errors import TooLarge
from kafka_io.model import TopicPartition

PARTITION = TopicPartition("clicks", 1, broker=0)


def owned(offset: int | None = 10) -> StreamPartition:
    """A partition of a stream, with this committed offset."""
    return StreamPartition(PARTITION, 7, offset, stream=0)


def chunk(partition: StreamPartition) -> Chunk:
    """A chunk in the current epoch of the partition."""
    return Chunk(partition, partition.fetch_offset()[0], TooLarge("x"))


def test_delivered_messages_are_processed_after_the_mark() -> None:
    partition = owned()
    assert partition.deliver(0, 20)
    assert (partition.delivered, partition.processed, partition.committed) == (20, 10, 10)
    partition.mark_processed()
    assert partition.processed == 20


def test_a_revoked_partition_delivers_nothing() -> None:
    partition = owned()
    partition.deliver(0, 20)
    partition.revoke()
    assert not partition.deliver(0, 30)
    assert not partition.advance_fetched(0, 40)
    assert partition.delivered == 20


def test_messages_of_an_older_epoch_are_not_delivered() -> None:
    partition = owned(None)
    assert partition.fetch_offset() == (0, None)
    partition.reset(5)
    assert partition.fetch_offset() == (1, 5)
    assert not partition.advance_fetched(0, 50)
    assert partition.advance_fetched(1, 50)
    assert partition.deliver(1, 20)
    partition.rewind()
    assert partition.fetch_offset() == (2, 20)
    assert not partition.deliver(1, 30)


def test_a_paused_partition_is_not_due() -> None:
    partition = owned()
    due = [partition.is_due]
    for seconds in (3600, 0):
        partition.pause(seconds)
        due.append(partition.is_due)
    assert due == [True, False, True]


def test_a_waiting_chunk_gets_the_room_of_a_revoked_partition() -> None:
    queue, first, second = ChunkQueue(1), owned(), owned()
    queue.put(chunk(first))
    putting = threading.Thread(target=queue.put, args=(chunk(second),))
    putting.start()
    first.revoke()
    queue.drop_revoked()
    putting.join(60)
    taken = queue.take(None)
    assert taken
    assert taken.partition is second
    assert queue.take(time.monotonic()) is None


def test_nobody_waits_for_a_closed_queue() -> None:
    queue = ChunkQueue(1)
    queue.put(chunk(owned()))
    putting = threading.Thread(target=queue.put, args=(chunk(owned()),))
    putting.start()
    queue.close()
    putting.join(60)
    assert not putting.is_alive()
    assert queue.take(None) is None
