"""Other clients read the messages of our members and write what ours read; other bytes are errors, or ignored."""

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

PARTITIONS = frozenset([TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1)])
# Partitions 0 and 2 of `a`, as Java's sticky assignor writes them: no version, and in its first release no generation.
STICKY_V0 = bytes.fromhex("00000001 0001 61 00000002 00000000 00000002")
STICKY_V1 = STICKY_V0 + bytes.fromhex("00000007")


@pytest.mark.parametrize("version", range(4))
def test_a_subscription_is_read_in_every_version(version: int) -> None:
    owned = [ConsumerProtocolSubscription.TopicPartition(topic="a", partitions=[0, 2])]
    message = ConsumerProtocolSubscription(
        version=version, topics=["a", "b"], user_data=b"u", owned_partitions=owned, generation_id=7, rack_id="r"
    )
    decoded = decode_subscription(message.encode())
    assert (decoded.topics, bytes(decoded.user_data or b"")) == (("a", "b"), b"u")
    assert ungrouped(decoded.owned) == (
        frozenset([TopicPartition("a", 0), TopicPartition("a", 2)]) if version >= 1 else frozenset()
    )
    assert (decoded.generation, decoded.rack) == (7 if version >= 2 else -1, "r" if version >= 3 else None)


def test_another_client_reads_our_bytes() -> None:
    subscription = SubscriptionMessage(topics=("a", "b"), user_data=b"u", owned=grouped(PARTITIONS), generation=7)
    message = ConsumerProtocolSubscription.decode(encode_subscription(subscription))
    assert (message.version, list(message.topics), message.user_data, message.generation_id) == (3, ["a", "b"], b"u", 7)
    assert [(topic.topic, list(topic.partitions)) for topic in message.owned_partitions] == [("a", [0, 2]), ("b", [1])]
    assert message.rack_id is None
    assigned = ConsumerProtocolAssignment.decode(encode_assignment(PARTITIONS))
    assert [(topic.topic, list(topic.partitions)) for topic in assigned.assigned_partitions] == [
        ("a", [0, 2]),
        ("b", [1]),
    ]


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_is_read_in_every_version(version: int) -> None:
    message = ConsumerProtocolAssignment(
        version=version, assigned_partitions=[("a", [0, 2]), ("b", [1])], user_data=b""
    )
    assert decode_assignment(message.encode()) == PARTITIONS


def test_a_member_unknown_to_the_leader_has_an_empty_assignment() -> None:
    assert decode_assignment(b"") == frozenset()


def test_unknown_fields_of_a_later_version_are_skipped() -> None:
    later = b"\x00\x09" + encode_subscription(SubscriptionMessage(topics=("a",)))[2:] + b"more"
    assert decode_subscription(later).topics == ("a",)


def test_the_user_data_of_the_sticky_assignor_equals_that_of_java() -> None:
    owned = OwnedPartitions(partitions=frozenset([TopicPartition("a", 0), TopicPartition("a", 2)]), generation=7)
    assert encode_sticky(owned) == STICKY_V1
    assert decode_sticky(STICKY_V1) == owned
    assert decode_sticky(STICKY_V0) == OwnedPartitions(partitions=owned.partitions)


@pytest.mark.parametrize("data", [None, b"", b"somebody else's", STICKY_V1 + b"more"])
def test_the_user_data_of_another_assignor_claims_nothing(data: bytes | None) -> None:
    assert decode_sticky(data) == NOTHING


def test_before_version_2_the_generation_is_in_the_user_data() -> None:
    owned = grouped(PARTITIONS)
    version_1 = SubscriptionMessage(
        topics=("a",), owned=owned, user_data=encode_generation(OwnedPartitions(generation=4))
    )
    assert decode_owned(version_1) == OwnedPartitions(partitions=PARTITIONS, generation=4)
    assert decode_owned(SubscriptionMessage(topics=("a",), owned=owned, generation=5)).generation == 5


@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_or_raise_a_wire_error(data: bytes) -> None:
    with suppress(WireError):
        assert decode_subscription(data).topics is not None
    with suppress(WireError):
        assert isinstance(decode_assignment(data), frozenset)
    assert isinstance(decode_sticky(data), OwnedPartitions)
