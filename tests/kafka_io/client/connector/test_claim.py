"""A claim hands out nothing that counts no more, and tells what may be committed."""

import threading
import time

from kafka_io.client.connector.claim import Claim
from kafka_io.client.connector.handover import Chunk, Handover
from kafka_io.errors import TooLarge
from kafka_io.model import BrokerPartition

PLACE = ("clicks", BrokerPartition(0, 1))


def claim(offset: int | None = 10) -> Claim:
    """A claim that begins at an offset."""
    return Claim(PLACE, 7, offset, fetch_bytes=100)


def chunk(of: Claim) -> Chunk:
    """Something that was fetched."""
    return Chunk(of, of.standing()[0], TooLarge("x"))


def test_what_is_handed_out_is_done_when_it_is_settled() -> None:
    one = claim()
    assert one.hand_out(0, 20)
    assert (one.handed, one.done, one.committed) == (20, 10, 10)
    one.settle()
    assert one.done == 20


def test_a_revoked_claim_hands_out_nothing() -> None:
    one = claim()
    one.hand_out(0, 20)
    one.revoke()
    assert not one.hand_out(0, 30)
    assert not one.fetched(0, 40)
    assert one.handed == 20


def test_what_was_fetched_before_a_new_beginning_counts_no_more() -> None:
    one = claim(None)
    assert one.standing() == (0, None)
    one.begin(5)
    assert one.standing() == (1, 5)
    assert not one.fetched(0, 50)
    assert one.fetched(1, 50)
    assert one.hand_out(1, 20)
    one.fetch_again()
    assert one.standing() == (2, 20)
    assert not one.hand_out(1, 30)


def test_a_resting_claim_is_not_due() -> None:
    one = claim()
    due = [one.is_due]
    for seconds in (3600, 0):
        one.rest(seconds)
        due.append(one.is_due)
    assert due == [True, False, True]


def test_room_that_revoked_claims_leave_is_given_to_who_waits() -> None:
    handover, first, second = Handover(1), claim(), claim()
    handover.put(chunk(first))
    putting = threading.Thread(target=handover.put, args=(chunk(second),))
    putting.start()
    first.revoke()
    handover.drop_revoked()
    putting.join(60)
    taken = handover.take(None)
    assert taken
    assert taken.claim is second
    assert handover.take(time.monotonic()) is None


def test_nobody_waits_for_a_closed_queue() -> None:
    handover = Handover(1)
    handover.put(chunk(claim()))
    putting = threading.Thread(target=handover.put, args=(chunk(claim()),))
    putting.start()
    handover.close()
    putting.join(60)
    assert not putting.is_alive()
    assert handover.take(None) is None
