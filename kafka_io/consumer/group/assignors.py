"""The assignors of Kafka's own clients, under their names: they divide partitions among the members of a group.

The leader of a group may be any client. So an assignor reads and writes the same user data as in other clients, and
orders members as they do: static members first, by name, then the others by id.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle

from kafka_io.consumer.group.protocol import (
    NOTHING,
    OwnedPartitions,
    SubscriptionMessage,
    decode_owned,
    decode_sticky,
    encode_generation,
    encode_sticky,
)
from kafka_io.consumer.group.sticky import StickyAssignment
from kafka_io.model import TopicPartition

Partitions = Mapping[str, int]
"""The number of partitions of each topic. Unknown topics are left out."""
PartitionAssignments = dict[str, frozenset[TopicPartition]]
"""The partitions of each member, by member id."""
MemberShares = Mapping[str, Collection[TopicPartition]]
"""The partitions of each member, in collections that only the assignor uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorMember:
    """A member of a group, for an assignor; `owned` are the partitions that it claims to own, or owned last."""

    id: str
    instance_id: str | None = None
    topics: frozenset[str]
    owned: OwnedPartitions = NOTHING

    @property
    def order(self) -> tuple[bool, str, str]:
        """Static members come first, so that members that come and go do not change their assignment."""
        return self.instance_id is None, self.instance_id or self.id, self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignor:
    """Divides partitions among members; all members of a group agree on one by its name.

    Args:
        name: the name in all clients.
        share: the assignment, for members in order.
        cooperative: members keep their partitions while they join (KIP-429); otherwise they revoke all before.
        user_data: the bytes that a member adds to its subscription.
        owned: the partitions that a member owns according to its subscription.

    >>> from kafka_io.consumer.group.assignors import ASSIGNORS, AssignorMember
    >>> members = [AssignorMember(id=name, topics=frozenset(["clicks"])) for name in ("a", "b")]
    >>> shares = ASSIGNORS["range"].share(members, {"clicks": 3})
    >>> {member: [str(partition) for partition in sorted(share)] for member, share in shares.items()}
    {'a': ['clicks-0', 'clicks-1'], 'b': ['clicks-2']}
    """

    name: str
    share: Callable[[Sequence[AssignorMember], Partitions], MemberShares]
    cooperative: bool = False
    user_data: Callable[[OwnedPartitions], bytes] = field(default=lambda _owned: b"")
    owned: Callable[[SubscriptionMessage], OwnedPartitions] = field(default=lambda _subscription: NOTHING)

    def assign(self, members: Iterable[AssignorMember], partitions: Partitions) -> PartitionAssignments:
        """The assignment, whatever the order of the members."""
        shares = self.share(sorted(members, key=lambda member: member.order), partitions)
        return {member: frozenset(share) for member, share in shares.items()}


def share_ranges(members: Sequence[AssignorMember], partitions: Partitions) -> MemberShares:
    """A range of each topic for each of its subscribers; the first members get one partition more if needed."""
    shares: dict[str, set[TopicPartition]] = {member.id: set() for member in members}
    for topic, count in partitions.items():
        readers = [member.id for member in members if topic in member.topics]
        start = 0
        for rank, reader in enumerate(readers):
            stop = start + count // len(readers) + (rank < count % len(readers))
            shares[reader].update(TopicPartition(topic, number) for number in range(start, stop))
            start = stop
    return shares


def share_round_robin(members: Sequence[AssignorMember], partitions: Partitions) -> MemberShares:
    """All partitions in turn; a member that does not subscribe to the topic is skipped."""
    shares: dict[str, set[TopicPartition]] = {member.id: set() for member in members}
    turns = cycle(members)
    wanted = frozenset[str]().union(*(member.topics for member in members))
    for topic, count in sorted(partitions.items()):
        if topic not in wanted:
            continue
        for number in range(count):
            reader = next(member for member in turns if topic in member.topics)
            shares[reader.id].add(TopicPartition(topic, number))
    return shares


def share_sticky(members: Sequence[AssignorMember], partitions: Partitions) -> MemberShares:
    """The most even assignment in which as many partitions as possible stay with their owner (KIP-54, `sticky`)."""
    topics = {topic: [member.id for member in members if topic in member.topics] for topic in partitions}
    wanted = {topic: partitions[topic] for topic, readers in topics.items() if readers}
    wanted_partitions = [TopicPartition(topic, number) for topic, count in wanted.items() for number in range(count)]
    assignment = StickyAssignment([member.id for member in members], topics, _owners(members, wanted))
    return assignment.share(wanted_partitions)


def share_cooperatively(members: Sequence[AssignorMember], partitions: Partitions) -> MemberShares:
    """Like `share_sticky`, but a partition that another member still owns is assigned to nobody yet (KIP-429).

    Its owner revokes the partition when it receives its assignment, and joins again. That second rebalance assigns it.
    """
    claims: dict[TopicPartition, set[str]] = {}
    for member in members:
        for partition in member.owned.partitions:
            claims.setdefault(partition, set()).add(member.id)
    owners = _owners(members, partitions)
    return {
        reader: [
            partition
            for partition in share
            if owners.get(partition) == reader or claims.get(partition, {reader}) == {reader}
        ]
        for reader, share in share_sticky(members, partitions).items()
    }


def _owners(members: Sequence[AssignorMember], partitions: Partitions) -> dict[TopicPartition, str]:
    """The owner of each partition: who claims it with the latest generation; nobody if two members do."""
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    for member in members:
        for partition in member.owned.partitions:
            if partition.topic in member.topics and partition.partition < partitions.get(partition.topic, 0):
                claims.setdefault(partition, []).append((member.owned.generation, member.id))
    owners = {}
    for partition, rivals in claims.items():
        newest = max(generation for generation, _ in rivals)
        latest = [member for generation, member in rivals if generation == newest]
        if len(latest) == 1:
            owners[partition] = latest[0]
    return owners


RANGE = Assignor(name="range", share=share_ranges)
ROUND_ROBIN = Assignor(name="roundrobin", share=share_round_robin)
STICKY = Assignor(
    name="sticky",
    share=share_sticky,
    user_data=encode_sticky,
    owned=lambda subscription: decode_sticky(subscription.user_data),
)
COOPERATIVE_STICKY = Assignor(
    name="cooperative-sticky",
    share=share_cooperatively,
    cooperative=True,
    user_data=encode_generation,
    owned=decode_owned,
)
ASSIGNORS: Mapping[str, Assignor] = {
    assignor.name: assignor for assignor in (RANGE, ROUND_ROBIN, STICKY, COOPERATIVE_STICKY)
}
