"""A claim delivers nothing of an old epoch, and knows what may be committed."""

import threading
import time

from kafka_io.consumer.connector.chunk_queue import Chunk, ChunkQueue
from kafka_io.consumer.connector.claim import PartitionClaim
from kafka_io.errors import TooLarge
from kafka_io.model import TopicPartition

PLACE = TopicPartition("clicks", 1, broker=0)


def claim(offset: int | None = 10) -> PartitionClaim:
    """A claim that begins at an offset."""
    return PartitionClaim(PLACE, 7, offset, stream=0)


def chunk(of: PartitionClaim) -> Chunk:
    """Something that was fetched."""
    return Chunk(of, of.fetch_offset()[0], TooLarge("x"))


def test_what_is_delivered_is_processed_when_it_is_marked() -> None:
    one = claim()
    assert one.deliver(0, 20)
    assert (one.delivered, one.processed, one.committed) == (20, 10, 10)
    one.mark_processed()
    assert one.processed == 20


def test_a_revoked_claim_delivers_nothing() -> None:
    one = claim()
    one.deliver(0, 20)
    one.revoke()
    assert not one.deliver(0, 30)
    assert not one.advance_fetched(0, 40)
    assert one.delivered == 20


def test_what_was_fetched_in_an_older_epoch_is_not_delivered() -> None:
    one = claim(None)
    assert one.fetch_offset() == (0, None)
    one.reset(5)
    assert one.fetch_offset() == (1, 5)
    assert not one.advance_fetched(0, 50)
    assert one.advance_fetched(1, 50)
    assert one.deliver(1, 20)
    one.rewind()
    assert one.fetch_offset() == (2, 20)
    assert not one.deliver(1, 30)


def test_a_paused_claim_is_not_due() -> None:
    one = claim()
    due = [one.is_due]
    for seconds in (3600, 0):
        one.pause(seconds)
        due.append(one.is_due)
    assert due == [True, False, True]


def test_room_that_revoked_claims_leave_is_given_to_who_waits() -> None:
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
