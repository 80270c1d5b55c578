"""A claim delivers no messages of an old epoch, and has the offset to commit."""

import threading
import time

from kafka_io.consumer.connector.chunk_queue import Chunk, ChunkQueue
from kafka_io.consumer.connector.claim import PartitionClaim
from kafka_io.errors import TooLarge
from kafka_io.model import TopicPartition

PARTITION = TopicPartition("clicks", 1, broker=0)


def claim(offset: int | None = 10) -> PartitionClaim:
    """A claim of a partition with this committed offset."""
    return PartitionClaim(PARTITION, 7, offset, stream=0)


def chunk(claimed: PartitionClaim) -> Chunk:
    """A chunk in the current epoch of the claim."""
    return Chunk(claimed, claimed.fetch_offset()[0], TooLarge("x"))


def test_delivered_messages_are_processed_after_the_mark() -> None:
    claimed = claim()
    assert claimed.deliver(0, 20)
    assert (claimed.delivered, claimed.processed, claimed.committed) == (20, 10, 10)
    claimed.mark_processed()
    assert claimed.processed == 20


def test_a_revoked_claim_delivers_nothing() -> None:
    claimed = claim()
    claimed.deliver(0, 20)
    claimed.revoke()
    assert not claimed.deliver(0, 30)
    assert not claimed.advance_fetched(0, 40)
    assert claimed.delivered == 20


def test_messages_of_an_older_epoch_are_not_delivered() -> None:
    claimed = claim(None)
    assert claimed.fetch_offset() == (0, None)
    claimed.reset(5)
    assert claimed.fetch_offset() == (1, 5)
    assert not claimed.advance_fetched(0, 50)
    assert claimed.advance_fetched(1, 50)
    assert claimed.deliver(1, 20)
    claimed.rewind()
    assert claimed.fetch_offset() == (2, 20)
    assert not claimed.deliver(1, 30)


def test_a_paused_claim_is_not_due() -> None:
    claimed = claim()
    due = [claimed.is_due]
    for seconds in (3600, 0):
        claimed.pause(seconds)
        due.append(claimed.is_due)
    assert due == [True, False, True]


def test_a_waiting_chunk_gets_the_room_of_a_revoked_claim() -> None:
    queue, first, second = ChunkQueue(1), claim(), claim()
    queue.put(chunk(first))
    putting = threading.Thread(target=queue.put, args=(chunk(second),))
    putting.start()
    first.revoke()
    queue.drop_revoked()
    putting.join(60)
    taken = queue.take(None)
    assert taken
    assert taken.claim is second
    assert queue.take(time.monotonic()) is None


def test_nobody_waits_for_a_closed_queue() -> None:
    queue = ChunkQueue(1)
    queue.put(chunk(claim()))
    putting = threading.Thread(target=queue.put, args=(chunk(claim()),))
    putting.start()
    queue.close()
    putting.join(60)
    assert not putting.is_alive()
    assert queue.take(None) is None
