"""For all members, topics and subscriptions: each partition goes to one subscriber, evenly and stably."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.consumer.group.assignors import (
    ASSIGNORS,
    COOPERATIVE_STICKY,
    RANGE,
    ROUND_ROBIN,
    STICKY,
    Assignor,
    AssignorMember,
    PartitionAssignments,
)
from kafka_io.consumer.group.protocol import OwnedPartitions
from kafka_io.model import TopicPartition

TOPICS = ("a", "b", "c")
Group = tuple[list[AssignorMember], dict[str, int]]

members_of = st.lists(
    st.builds(
        AssignorMember,
        id=st.text("mnop", min_size=1, max_size=3),
        instance_id=st.none() | st.text("xy", min_size=1, max_size=2),
        topics=st.frozensets(st.sampled_from(TOPICS)),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda member: member.id,
)
partitions_of = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9))
every_assignor = pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=lambda assignor: assignor.name)
sticky_assignor = pytest.mark.parametrize("assignor", [STICKY, COOPERATIVE_STICKY], ids=lambda assignor: assignor.name)


def wanted(members: list[AssignorMember], partitions: Mapping[str, int]) -> set[TopicPartition]:
    return {
        TopicPartition(topic, number)
        for topic, count in partitions.items()
        for number in range(count)
        if any(topic in member.topics for member in members)
    }


def holding(members: list[AssignorMember], shares: PartitionAssignments, generation: int) -> list[AssignorMember]:
    """The members when they join again and own their shares."""
    return [
        AssignorMember(
            id=member.id,
            instance_id=member.instance_id,
            topics=member.topics,
            owned=OwnedPartitions(partitions=shares.get(member.id, frozenset()), generation=generation),
        )
        for member in members
    ]


def sizes(shares: PartitionAssignments) -> list[int]:
    return sorted(map(len, shares.values()))


def kept(before: PartitionAssignments, after: PartitionAssignments) -> int:
    return sum(len(after.get(member, frozenset()) & share) for member, share in before.items())


@every_assignor
@given(members_of, partitions_of)
def test_each_wanted_partition_is_assigned_exactly_once(
    assignor: Assignor, members: list[AssignorMember], partitions: dict[str, int]
) -> None:
    shares = assignor.assign(members, partitions)
    assert shares.keys() == {member.id for member in members}
    assigned = Counter(partition for share in shares.values() for partition in share)
    assert assigned == Counter(dict.fromkeys(wanted(members, partitions), 1))
    topics = {member.id: member.topics for member in members}
    assert all(partition.topic in topics[member] for member, share in shares.items() for partition in share)


@every_assignor
@given(members_of, partitions_of, st.randoms(use_true_random=False))
def test_the_order_of_the_members_does_not_change_the_assignment(
    assignor: Assignor, members: list[AssignorMember], partitions: dict[str, int], random: Random
) -> None:
    mixed = list(members)
    random.shuffle(mixed)
    # Two members with the same static name cannot be in a group; the order is by name, then by id.
    assert assignor.assign(mixed, partitions) == assignor.assign(members, partitions)


@given(members_of, partitions_of)
def test_ranges_of_a_topic_are_contiguous_and_the_first_ones_are_larger_by_one(
    members: list[AssignorMember], partitions: dict[str, int]
) -> None:
    shares = RANGE.assign(members, partitions)
    for topic, count in partitions.items():
        readers = sorted((member for member in members if topic in member.topics), key=lambda member: member.order)
        numbers = [
            sorted(partition.partition for partition in shares[reader.id] if partition.topic == topic)
            for reader in readers
        ]
        assert [number for share in numbers for number in share] == list(range(count if readers else 0))
        lengths = [len(share) for share in numbers]
        assert lengths == sorted(lengths, reverse=True)
        assert not lengths or lengths[0] - lengths[-1] <= 1


@pytest.mark.parametrize("assignor", [ROUND_ROBIN, STICKY, COOPERATIVE_STICKY], ids=lambda assignor: assignor.name)
@given(members_of, partitions_of)
def test_members_with_the_same_topics_differ_by_at_most_one_partition(
    assignor: Assignor, members: list[AssignorMember], partitions: dict[str, int]
) -> None:
    subscribers = [replace(member, topics=frozenset(TOPICS)) for member in members]
    lengths = sizes(assignor.assign(subscribers, partitions))
    assert lengths[-1] - lengths[0] <= 1


@sticky_assignor
@given(members_of, partitions_of)
def test_no_member_could_take_a_partition_from_one_with_two_more(
    assignor: Assignor, members: list[AssignorMember], partitions: dict[str, int]
) -> None:
    shares = assignor.assign(members, partitions)
    for taker in members:
        for giver in members:
            could_take = any(partition.topic in taker.topics for partition in shares[giver.id])
            assert not could_take or len(shares[giver.id]) <= len(shares[taker.id]) + 1


@sticky_assignor
@given(members_of, partitions_of)
def test_an_unchanged_group_keeps_its_assignment(
    assignor: Assignor, members: list[AssignorMember], partitions: dict[str, int]
) -> None:
    shares = assignor.assign(members, partitions)
    assert assignor.assign(holding(members, shares, 3), partitions) == shares


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 20), st.integers(0, 20))
def test_members_keep_as_many_partitions_as_an_even_share_allows(
    before: int, after: int, count: int, more: int
) -> None:
    """When members come or go and partitions are added, each member keeps its partitions up to an even share."""
    earlier = [AssignorMember(id=f"m{number}", topics=frozenset("a")) for number in range(before)]
    current = [AssignorMember(id=f"m{number}", topics=frozenset("a")) for number in range(after)]
    old = STICKY.assign(earlier, {"a": count} if count else {})
    new = STICKY.assign(holding(current, old, 1), {"a": count + more} if count + more else {})
    floor, extra = divmod(count + more, after)
    owned = sorted((len(old.get(member.id, ())) for member in current), reverse=True)
    quotas = [floor + (rank < extra) for rank in range(after)]
    assert kept(old, new) == sum(min(size, quota) for size, quota in zip(owned, quotas, strict=True))


@given(members_of, members_of, partitions_of)
def test_no_partition_of_a_cooperative_group_has_two_owners(
    before: list[AssignorMember], after: list[AssignorMember], partitions: dict[str, int]
) -> None:
    """A partition is assigned only after its owner has revoked it, which takes a second rebalance."""
    shares = COOPERATIVE_STICKY.assign(before, partitions)
    remaining = {member.id for member in after}
    owned = {member: share for member, share in shares.items() if member in remaining}
    first = COOPERATIVE_STICKY.assign(holding(after, owned, 1), partitions)
    for member, share in first.items():
        for other, partitions_of_other in owned.items():
            assert other == member or not share & partitions_of_other
    # Each member revokes the partitions that it lost; then all partitions are assigned.
    second = COOPERATIVE_STICKY.assign(holding(after, first, 2), partitions)
    assert frozenset[TopicPartition]().union(*second.values()) == wanted(after, partitions)
    assert kept(first, second) == sum(map(len, first.values()))


@sticky_assignor
def test_of_two_claims_the_later_generation_counts(assignor: Assignor) -> None:
    claimed = frozenset([TopicPartition("a", 0), TopicPartition("a", 1)])
    old = AssignorMember(id="a-old", topics=frozenset("a"), owned=OwnedPartitions(partitions=claimed, generation=4))
    new = AssignorMember(id="b-new", topics=frozenset("a"), owned=OwnedPartitions(partitions=claimed, generation=5))
    shares = assignor.assign([old, new], {"a": 2})
    assert len(shares["b-new"]) == 1
    assert shares["a-old"] == (frozenset() if assignor.cooperative else claimed - shares["b-new"])


def test_static_members_come_first_in_the_order_of_their_names() -> None:
    members = [
        AssignorMember(id="a", topics=frozenset("a")),
        AssignorMember(id="z", instance_id="one", topics=frozenset("a")),
        AssignorMember(id="y", instance_id="two", topics=frozenset("a")),
    ]
    shares = RANGE.assign(members, {"a": 4})
    assert [sorted(partition.partition for partition in shares[name]) for name in ("z", "y", "a")] == [[0, 1], [2], [3]]


def test_a_chain_of_moves_evens_out_different_subscriptions() -> None:
    """`m` cannot take a partition of `o`, but `n` can give one to `m` and take one of `o`."""
    members = [
        AssignorMember(id="m", topics=frozenset("a")),
        AssignorMember(
            id="n",
            topics=frozenset("ab"),
            owned=OwnedPartitions(partitions=frozenset([TopicPartition("a", 0)]), generation=1),
        ),
        AssignorMember(
            id="o",
            topics=frozenset("b"),
            owned=OwnedPartitions(partitions=frozenset([TopicPartition("b", 0), TopicPartition("b", 1)]), generation=1),
        ),
    ]
    assert sizes(STICKY.assign(members, {"a": 1, "b": 2})) == [1, 1, 1]
