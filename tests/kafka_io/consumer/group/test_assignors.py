"""Whatever members, topics and subscriptions: each partition goes to one that wants it, evenly and stably."""

from collections import Counter
from collections.abc import Mapping
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
every_assignor = pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=lambda one: one.name)
sticky_assignor = pytest.mark.parametrize("assignor", [STICKY, COOPERATIVE_STICKY], ids=lambda one: one.name)


def wanted(members: list[AssignorMember], partitions: Mapping[str, int]) -> set[TopicPartition]:
    return {
        TopicPartition(topic, number)
        for topic, count in partitions.items()
        for number in range(count)
        if any(topic in member.topics for member in members)
    }


def holding(members: list[AssignorMember], shares: PartitionAssignments, generation: int) -> list[AssignorMember]:
    """The members as they join again with what they have."""
    return [
        AssignorMember(
            id=one.id,
            instance_id=one.instance_id,
            topics=one.topics,
            owned=OwnedPartitions(partitions=shares.get(one.id, frozenset()), generation=generation),
        )
        for one in members
    ]


def sizes(shares: PartitionAssignments) -> list[int]:
    return sorted(map(len, shares.values()))


def kept(before: PartitionAssignments, after: PartitionAssignments) -> int:
    return sum(len(after.get(member, frozenset()) & places) for member, places in before.items())


@every_assignor
@given(members_of, partitions_of)
def test_all_is_covered_and_nothing_twice(
    assignor: Assignor, members: list[AssignorMember], partitions: dict[str, int]
) -> None:
    shares = assignor.assign(members, partitions)
    assert shares.keys() == {member.id for member in members}
    given_out = Counter(place for places in shares.values() for place in places)
    assert given_out == Counter(dict.fromkeys(wanted(members, partitions), 1))
    topics = {member.id: member.topics for member in members}
    assert all(place.topic in topics[member] for member, places in shares.items() for place in places)


@every_assignor
@given(members_of, partitions_of, st.randoms(use_true_random=False))
def test_the_order_in_which_members_are_listed_does_not_matter(
    assignor: Assignor, members: list[AssignorMember], partitions: dict[str, int], random: Random
) -> None:
    mixed = list(members)
    random.shuffle(mixed)
    # Two of one static name cannot be in a group; the order is by name, then id.
    assert assignor.assign(mixed, partitions) == assignor.assign(members, partitions)


@given(members_of, partitions_of)
def test_ranges_of_a_topic_are_contiguous_and_differ_by_one_the_larger_first(
    members: list[AssignorMember], partitions: dict[str, int]
) -> None:
    shares = RANGE.assign(members, partitions)
    for topic, count in partitions.items():
        readers = sorted((one for one in members if topic in one.topics), key=lambda one: one.order)
        numbers = [sorted(place.partition for place in shares[one.id] if place.topic == topic) for one in readers]
        assert [number for part in numbers for number in part] == list(range(count if readers else 0))
        lengths = [len(part) for part in numbers]
        assert lengths == sorted(lengths, reverse=True)
        assert not lengths or lengths[0] - lengths[-1] <= 1


@pytest.mark.parametrize("assignor", [ROUND_ROBIN, STICKY, COOPERATIVE_STICKY], ids=lambda one: one.name)
@given(members_of, partitions_of)
def test_members_with_the_same_topics_differ_by_one_at_most(
    assignor: Assignor, members: list[AssignorMember], partitions: dict[str, int]
) -> None:
    alike = [AssignorMember(id=one.id, instance_id=one.instance_id, topics=frozenset(TOPICS)) for one in members]
    found = sizes(assignor.assign(alike, partitions))
    assert found[-1] - found[0] <= 1


@sticky_assignor
@given(members_of, partitions_of)
def test_no_member_could_take_one_from_another_that_has_two_more(
    assignor: Assignor, members: list[AssignorMember], partitions: dict[str, int]
) -> None:
    shares = assignor.assign(members, partitions)
    for taker in members:
        for giver in members:
            could_take = any(place.topic in taker.topics for place in shares[giver.id])
            assert not could_take or len(shares[giver.id]) <= len(shares[taker.id]) + 1


@sticky_assignor
@given(members_of, partitions_of)
def test_a_group_in_which_nothing_changes_keeps_all(
    assignor: Assignor, members: list[AssignorMember], partitions: dict[str, int]
) -> None:
    shares = assignor.assign(members, partitions)
    assert assignor.assign(holding(members, shares, 3), partitions) == shares


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 20), st.integers(0, 20))
def test_as_much_is_kept_as_balance_allows(before: int, after: int, count: int, more: int) -> None:
    """Members come or go, partitions are added: each keeps what it has up to its part of the whole."""
    then = [AssignorMember(id=f"m{number}", topics=frozenset("a")) for number in range(before)]
    now = [AssignorMember(id=f"m{number}", topics=frozenset("a")) for number in range(after)]
    old = STICKY.assign(then, {"a": count} if count else {})
    new = STICKY.assign(holding(now, old, 1), {"a": count + more} if count + more else {})
    floor, extra = divmod(count + more, after)
    had = sorted((len(old.get(one.id, ())) for one in now), reverse=True)
    quotas = [floor + (rank < extra) for rank in range(after)]
    assert kept(old, new) == sum(min(have, quota) for have, quota in zip(had, quotas, strict=True))


@given(members_of, members_of, partitions_of)
def test_no_partition_is_ever_at_two_members_of_a_cooperative_group(
    before: list[AssignorMember], after: list[AssignorMember], partitions: dict[str, int]
) -> None:
    """One may be given out only when its owner has given it up, which takes a second round."""
    held = COOPERATIVE_STICKY.assign(before, partitions)
    stayed = {one.id: held[one.id] for one in before if one.id in {each.id for each in after}}
    first = COOPERATIVE_STICKY.assign(holding(after, stayed, 1), partitions)
    for member, places in first.items():
        for place in places:
            assert not any(place in owned for owner, owned in stayed.items() if owner != member)
    # Each gives up what it was not given again; then all is shared out, as a sticky group would have it.
    second = COOPERATIVE_STICKY.assign(holding(after, first, 2), partitions)
    assert frozenset[TopicPartition]().union(*second.values()) == wanted(after, partitions)
    assert kept(first, second) == sum(map(len, first.values()))


@sticky_assignor
def test_what_two_claim_is_the_one_s_of_the_later_generation(assignor: Assignor) -> None:
    places = frozenset([TopicPartition("a", 0), TopicPartition("a", 1)])
    old = AssignorMember(id="a-old", topics=frozenset("a"), owned=OwnedPartitions(partitions=places, generation=4))
    new = AssignorMember(id="b-new", topics=frozenset("a"), owned=OwnedPartitions(partitions=places, generation=5))
    shares = assignor.assign([old, new], {"a": 2})
    assert len(shares["b-new"]) == 1
    assert shares["a-old"] == (frozenset() if assignor.cooperative else places - shares["b-new"])


def test_static_members_come_first_by_their_names() -> None:
    members = [
        AssignorMember(id="a", topics=frozenset("a")),
        AssignorMember(id="z", instance_id="one", topics=frozenset("a")),
        AssignorMember(id="y", instance_id="two", topics=frozenset("a")),
    ]
    shares = RANGE.assign(members, {"a": 4})
    assert [sorted(place.partition for place in shares[name]) for name in ("z", "y", "a")] == [[0, 1], [2], [3]]


def test_uneven_subscriptions_are_evened_out_by_a_chain() -> None:
    """`m` can take nothing of `o` but by way of `n`."""
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
