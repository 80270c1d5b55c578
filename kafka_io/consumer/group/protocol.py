"""The messages between the members of a group; the coordinator only passes them on.

    int16 version | subscription or assignment

An unknown newer version is read as version 3, because newer versions only append fields. Owned partitions exist from
version 1 on (KIP-429), the generation from 2 (KIP-792), the rack from 3 (KIP-881).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from kafka_io.brokers.leaders import by_topic
from kafka_io.errors import Truncated, WireError
from kafka_io.model import TopicPartition
from kafka_io.wire import primitives
from kafka_io.wire.primitives import WireReader
from kafka_io.wire.schema import NEVER, Api, Struct, wire
from kafka_io.wire.types import Int32, String, WireBytes

TYPE = "consumer"
"""The protocol type of groups whose members read topics."""
NO_GENERATION = -1
_NEWEST = 3

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedPartitions:
    """The partitions that a member says it owns, and the generation of the group in which it got them."""

    partitions: frozenset[TopicPartition] = frozenset()
    generation: int = NO_GENERATION


NOTHING = OwnedPartitions()


class TopicPartitionsMessage(Struct):
    """Partitions of one topic."""

    topic: String
    partitions: tuple[Int32, ...]


class SubscriptionMessage(Struct):
    """The topics that a member subscribes to, and the partitions that it owns."""

    topics: tuple[String, ...]
    user_data: WireBytes | None = None
    owned: tuple[TopicPartitionsMessage, ...] = wire(since=1, default=())
    generation: Int32 = wire(since=2, default=NO_GENERATION)
    rack: String | None = wire(since=3, default=None)


class AssignmentMessage(Struct):
    """The partitions that a member is to read."""

    partitions: tuple[TopicPartitionsMessage, ...]
    user_data: WireBytes | None = None


class StickyData(Struct):
    """The user data of the eager sticky assignor: the last assignment, without a version field.

    Version 0 has no generation.
    """

    partitions: tuple[TopicPartitionsMessage, ...]
    generation: Int32 = wire(since=1, default=NO_GENERATION)


def _format(kind: type[T], newest: int) -> Api[T]:
    return Api(key=-1, name=kind.__name__, versions=(0, newest), flexible_from=NEVER, answer=kind)


_SUBSCRIPTION = _format(SubscriptionMessage, _NEWEST)
_ASSIGNMENT = _format(AssignmentMessage, _NEWEST)
_STICKY = _format(StickyData, 1)


def grouped(partitions: Iterable[TopicPartition]) -> tuple[TopicPartitionsMessage, ...]:
    """The partitions by topic, in order."""
    return tuple(
        TopicPartitionsMessage(topic=topic, partitions=tuple(numbers))
        for topic, numbers in by_topic(sorted(partitions)).items()
    )


def ungrouped(topics: Iterable[TopicPartitionsMessage]) -> frozenset[TopicPartition]:
    """The inverse of `grouped`."""
    return frozenset(TopicPartition(topic.topic, number) for topic in topics for number in topic.partitions)


def encode_subscription(subscription: SubscriptionMessage) -> bytes:
    """The bytes that a member joins with, in the newest version."""
    return b"".join([primitives.int16(_NEWEST), *_SUBSCRIPTION.encode(subscription, _NEWEST)])


def decode_subscription(data: primitives.Octets) -> SubscriptionMessage:
    """The inverse of `encode_subscription`, for any version.

    Raises:
        WireError: the bytes are no subscription.
    """
    return _decode(_SUBSCRIPTION, data)


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """The bytes that the leader sends: version 0, which differs from later ones only in the version number."""
    message = AssignmentMessage(partitions=grouped(partitions), user_data=b"")
    return b"".join([primitives.int16(0), *_ASSIGNMENT.encode(message, 0)])


def decode_assignment(data: primitives.Octets) -> frozenset[TopicPartition]:
    """The inverse of `encode_assignment`, for any version. A member unknown to the leader receives no bytes.

    Raises:
        WireError: the bytes are no assignment.
    """
    return ungrouped(_decode(_ASSIGNMENT, data).partitions) if len(data) else frozenset()


def encode_sticky(owned: OwnedPartitions) -> bytes:
    """The user data of the eager sticky assignor, whose members revoke all partitions before they join."""
    return b"".join(_STICKY.encode(StickyData(partitions=grouped(owned.partitions), generation=owned.generation), 1))


def decode_sticky(data: primitives.Octets | None) -> OwnedPartitions:
    """The inverse of `encode_sticky`; NOTHING if the bytes are not valid, as those of another assignor."""
    for version in (1, 0):
        try:
            sticky_data = _STICKY.decode(StickyData, WireReader(memoryview(data or b"")), version)
        except WireError:
            continue
        return OwnedPartitions(partitions=ungrouped(sticky_data.partitions), generation=sticky_data.generation)
    return NOTHING


def encode_generation(owned: OwnedPartitions) -> bytes:
    """The user data of the cooperative sticky assignor: the generation, which subscriptions before v2 lack."""
    return primitives.int32(owned.generation)


def decode_owned(subscription: SubscriptionMessage) -> OwnedPartitions:
    """The partitions a cooperative member owns. Before version 2 its generation is in the user data."""
    generation, data = subscription.generation, subscription.user_data or b""
    if generation == NO_GENERATION and len(data) == len(primitives.int32(0)):
        generation = WireReader(memoryview(data)).int32()
    return OwnedPartitions(partitions=ungrouped(subscription.owned), generation=generation)


def _decode(form: Api[T], data: primitives.Octets) -> T:
    reader = WireReader(memoryview(data))
    version = reader.int16()
    if version < 0:
        raise Truncated(f"the version of a {form.name} is {version}, which is not valid")
    return form.read(form.answer, reader, min(version, _NEWEST))
