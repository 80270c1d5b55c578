"""What members tell each other is what other clients write and read; strangers' bytes are errors, or nothing."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kafka_io.consumer.group.protocol import (
    NOTHING,
    OwnedPartitions,
    SubscriptionMessage,
    decode_assignment,
    decode_owned,
    decode_sticky,
    decode_subscription,
    encode_assignment,
    encode_generation,
    encode_sticky,
    encode_subscription,
    grouped,
    ungrouped,
)
from kafka_io.errors import WireError
from kafka_io.model import TopicPartition

PLACES = frozenset([TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1)])
# `a` with partitions 0 and 2, as Java's sticky assignor writes it: no version, and in its first release no generation.
STICKY_V0 = bytes.fromhex("00000001 0001 61 00000002 00000000 00000002")
STICKY_V1 = STICKY_V0 + bytes.fromhex("00000007")


@pytest.mark.parametrize("version", range(4))
def test_a_subscription_is_read_in_every_version(version: int) -> None:
    owned = [ConsumerProtocolSubscription.TopicPartition(topic="a", partitions=[0, 2])]
    theirs = ConsumerProtocolSubscription(
        version=version, topics=["a", "b"], user_data=b"u", owned_partitions=owned, generation_id=7, rack_id="r"
    )
    found = decode_subscription(theirs.encode())
    assert (found.topics, bytes(found.user_data or b"")) == (("a", "b"), b"u")
    assert ungrouped(found.owned) == (
        frozenset([TopicPartition("a", 0), TopicPartition("a", 2)]) if version >= 1 else frozenset()
    )
    assert (found.generation, found.rack) == (7 if version >= 2 else -1, "r" if version >= 3 else None)


def test_ours_is_read_by_another_client() -> None:
    ours = SubscriptionMessage(topics=("a", "b"), user_data=b"u", owned=grouped(PLACES), generation=7)
    theirs = ConsumerProtocolSubscription.decode(encode_subscription(ours))
    assert (theirs.version, list(theirs.topics), theirs.user_data, theirs.generation_id) == (3, ["a", "b"], b"u", 7)
    assert [(one.topic, list(one.partitions)) for one in theirs.owned_partitions] == [("a", [0, 2]), ("b", [1])]
    assert theirs.rack_id is None
    given_out = ConsumerProtocolAssignment.decode(encode_assignment(PLACES))
    assert [(one.topic, list(one.partitions)) for one in given_out.assigned_partitions] == [("a", [0, 2]), ("b", [1])]


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_is_read_in_every_version(version: int) -> None:
    theirs = ConsumerProtocolAssignment(version=version, assigned_partitions=[("a", [0, 2]), ("b", [1])], user_data=b"")
    assert decode_assignment(theirs.encode()) == PLACES


def test_a_member_that_the_leader_did_not_know_has_nothing() -> None:
    assert decode_assignment(b"") == frozenset()


def test_a_later_version_is_read_as_far_as_we_know_it() -> None:
    later = b"\x00\x09" + encode_subscription(SubscriptionMessage(topics=("a",)))[2:] + b"more"
    assert decode_subscription(later).topics == ("a",)


def test_what_the_sticky_assignor_adds_is_java_s() -> None:
    held = OwnedPartitions(partitions=frozenset([TopicPartition("a", 0), TopicPartition("a", 2)]), generation=7)
    assert encode_sticky(held) == STICKY_V1
    assert decode_sticky(STICKY_V1) == held
    assert decode_sticky(STICKY_V0) == OwnedPartitions(partitions=held.partitions)


@pytest.mark.parametrize("data", [None, b"", b"somebody else's", STICKY_V1 + b"more"])
def test_what_another_assignor_added_claims_nothing(data: bytes | None) -> None:
    assert decode_sticky(data) == NOTHING


def test_before_version_2_the_generation_stands_beside() -> None:
    owned = grouped(PLACES)
    beside = SubscriptionMessage(topics=("a",), owned=owned, user_data=encode_generation(OwnedPartitions(generation=4)))
    assert decode_owned(beside) == OwnedPartitions(partitions=PLACES, generation=4)
    assert decode_owned(SubscriptionMessage(topics=("a",), owned=owned, generation=5)).generation == 5


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(WireError):
        assert decode_subscription(data).topics is not None
    with suppress(WireError):
        assert isinstance(decode_assignment(data), frozenset)
    assert isinstance(decode_sticky(data), OwnedPartitions)
