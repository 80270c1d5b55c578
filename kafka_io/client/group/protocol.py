"""What members of a group tell each other through its coordinator, which only passes it on.

    int16 version | subscription or assignment

A version that is newer than ours is read as the newest we know: what later ones add stands behind. Owned partitions
are there from version 1 on (KIP-429), the generation from 2 (KIP-792), the rack from 3 (KIP-881).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from kafka_io.client.modern.leading import Place, by_topic
from kafka_io.errors import Truncated, WireError
from kafka_io.wire import primitives
from kafka_io.wire.primitives import Reader
from kafka_io.wire.schema import NEVER, Api, struct, wire
from kafka_io.wire.types import Bytes, Int32, String

TYPE = "consumer"
"""The protocol type of groups whose members read topics."""
NO_GENERATION = -1

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Partitions that a member says it has, and since which generation of the group."""

    places: frozenset[Place] = frozenset()
    generation: int = NO_GENERATION


NOTHING = Held()


@struct
class TopicPartitions:
    """Partitions of one topic."""

    topic: String
    partitions: tuple[Int32, ...]


@struct
class Subscription:
    """What a member wants to read, and what it has."""

    topics: tuple[String, ...]
    user_data: Bytes | None = None
    owned: tuple[TopicPartitions, ...] = wire(since=1, default=())
    generation: Int32 = wire(since=2, default=NO_GENERATION)
    rack: String | None = wire(since=3, default=None)


@struct
class Assignment:
    """What a member is to read."""

    partitions: tuple[TopicPartitions, ...]
    user_data: Bytes | None = None


@struct
class StickyData:
    """What the eager sticky assignor adds: what the member had. It has no version in front; 0 has no generation."""

    partitions: tuple[TopicPartitions, ...]
    generation: Int32 = wire(since=1, default=NO_GENERATION)


def _format(kind: type[T], newest: int) -> Api[T]:
    return Api(key=-1, name=kind.__name__, versions=(0, newest), flexible_from=NEVER, answer=kind)


_SUBSCRIPTION, _ASSIGNMENT, _STICKY = _format(Subscription, 3), _format(Assignment, 3), _format(StickyData, 1)


def grouped(places: Iterable[Place]) -> tuple[TopicPartitions, ...]:
    """The partitions by topic, in order."""
    return tuple(
        TopicPartitions(topic=topic, partitions=tuple(numbers)) for topic, numbers in by_topic(sorted(places)).items()
    )


def ungrouped(topics: Iterable[TopicPartitions]) -> frozenset[Place]:
    """The inverse."""
    return frozenset((one.topic, number) for one in topics for number in one.partitions)


def encode_subscription(subscription: Subscription) -> bytes:
    """As a member joins with it, in the newest version."""
    return _encode(_SUBSCRIPTION, subscription)


def decode_subscription(data: primitives.Octets) -> Subscription:
    """The inverse, of any version.

    Raises:
        WireError: the bytes are none.
    """
    return _decode(_SUBSCRIPTION, data)


def encode_assignment(places: Iterable[Place]) -> bytes:
    """As the leader sends it: in version 0, in which the later ones only have another number."""
    message = Assignment(partitions=grouped(places), user_data=b"")
    return b"".join([primitives.int16(0), *_ASSIGNMENT.encode(message, 0)])


def decode_assignment(data: primitives.Octets) -> frozenset[Place]:
    """The inverse, of any version. A member that the leader knew nothing of is sent no bytes at all.

    Raises:
        WireError: the bytes are no assignment.
    """
    return ungrouped(_decode(_ASSIGNMENT, data).partitions) if len(data) else frozenset()


def encode_sticky(held: Held) -> bytes:
    """What the eager sticky assignor says beside the subscription, for its members give up all before they join."""
    return b"".join(_STICKY.encode(StickyData(partitions=grouped(held.places), generation=held.generation), 1))


def decode_sticky(data: primitives.Octets | None) -> Held:
    """The inverse; nothing where the bytes are no such thing: another assignor's are not our concern."""
    for version in (1, 0):
        try:
            found = _STICKY.decode(StickyData, Reader(memoryview(data or b"")), version)
        except WireError:
            continue
        return Held(places=ungrouped(found.partitions), generation=found.generation)
    return NOTHING


def encode_generation(held: Held) -> bytes:
    """What the cooperative sticky assignor says beside it: the generation, which subscriptions before 2 have not."""
    return primitives.int32(held.generation)


def decode_owned(subscription: Subscription) -> Held:
    """What a cooperative member has: its generation is in the subscription, or before version 2 beside it."""
    generation, data = subscription.generation, subscription.user_data or b""
    if generation == NO_GENERATION and len(data) == len(primitives.int32(0)):
        generation = Reader(memoryview(data)).int32()
    return Held(places=ungrouped(subscription.owned), generation=generation)


def _encode(form: Api[T], message: T) -> bytes:
    newest = form.versions[1]
    return b"".join([primitives.int16(newest), *form.encode(message, newest)])


def _decode(form: Api[T], data: primitives.Octets) -> T:
    reader = Reader(memoryview(data))
    version = reader.int16()
    if version < 0:
        raise Truncated(f"a {form.name} of version {version}")
    return form.read(form.answer, reader, min(version, form.versions[1]))
