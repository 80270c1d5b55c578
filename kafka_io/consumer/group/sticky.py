"""The sticky assignment: an even distribution of partitions in which members keep as many as possible.

Partitions without an owner go to the members with the fewest. Then partitions move, one at a time and each along the
shortest chain of members, from a member with the most to one with at least two fewer. When no such chain is left, no
other assignment is more even: it is an optimal semi-matching of partitions to members (Harvey, Ladner, Lovasz, Tamir).
Members that subscribe to the same topics then differ by at most one partition, and keep as many as they can.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kafka_io.model import TopicPartition

SubscribedTopics = Mapping[str, Sequence[str]]
"""The members that subscribe to each topic."""
_MIN_DIFFERENCE = 2  # a move between members that differ by less only swaps them


class _Step(NamedTuple):
    """A partition of `topic` goes from one member to another."""

    giver: str
    topic: str
    taker: str


class StickyAssignment:
    """An assignment while it is computed.

    Args:
        members: in the order that decides between members with equally many partitions.
        topics: the subscribers of each topic.
        before: the current owner of each partition; only owners that still subscribe to the topic.
    """

    def __init__(self, members: Sequence[str], topics: SubscribedTopics, before: Mapping[TopicPartition, str]) -> None:
        self._rank = {member: rank for rank, member in enumerate(members)}
        self._topics = topics
        self._before = before
        self._load = Counter(dict.fromkeys(members, 0))
        self._assigned: dict[str, dict[str, set[int]]] = {member: defaultdict(set) for member in members}

    def share(self, partitions: Iterable[TopicPartition]) -> dict[str, frozenset[TopicPartition]]:
        """The partitions of each member."""
        unowned = []
        for partition in sorted(partitions):
            if (owner := self._before.get(partition)) is None:
                unowned.append(partition)
            else:
                self._give(owner, partition)
        # Topics with few subscribers first, while the members of the others are still free to choose.
        for partition in sorted(unowned, key=lambda partition: len(self._topics[partition.topic])):
            self._give(min(self._topics[partition.topic], key=self._order), partition)
        while chain := self._improvement():
            self._move(chain)
        return {
            member: frozenset(TopicPartition(topic, number) for topic, numbers in topics.items() for number in numbers)
            for member, topics in self._assigned.items()
        }

    def _give(self, member: str, partition: TopicPartition) -> None:
        self._assigned[member][partition.topic].add(partition.partition)
        self._load[member] += 1

    def _order(self, member: str) -> tuple[int, int]:
        return self._load[member], self._rank[member]

    def _improvement(self) -> list[_Step]:
        """The steps from a member with the most partitions to one with at least two fewer; none if it is even."""
        min_load = min(self._load.values(), default=0)
        exhausted: set[str] = set()  # members that an earlier search reached without success
        for member in sorted(self._load, key=self._order, reverse=True):
            if self._load[member] < min_load + _MIN_DIFFERENCE:
                break
            if member not in exhausted and (chain := self._search(member, exhausted)):
                return chain
        return []

    def _search(self, first: str, seen: set[str]) -> list[_Step]:
        """The shortest chain from `first`; among equally short ones, that to the member with the fewest.

        Breadth first: a level holds the members to which a member of the level before could give a partition. Members
        in `seen` are left out, and all members that the search reaches are added to it.
        """
        steps_to: dict[str, _Step] = {}
        level = [first]
        seen.add(first)
        while level:
            following = []
            for giver in level:
                for topic in sorted(topic for topic, numbers in self._assigned[giver].items() if numbers):
                    for taker in self._topics[topic]:
                        if taker not in seen:
                            seen.add(taker)
                            steps_to[taker] = _Step(giver, topic, taker)
                            following.append(taker)
            last = min(following, key=self._order, default=first)
            if self._load[first] >= self._load[last] + _MIN_DIFFERENCE:
                return _chain(steps_to, last)
            level = following
        return []

    def _move(self, chain: Sequence[_Step]) -> None:
        for step in chain:
            numbers = self._assigned[step.giver][step.topic]
            number = max(numbers, key=lambda number: (self._preference(step, number), number))
            numbers.remove(number)
            self._assigned[step.taker][step.topic].add(number)
        self._load[chain[0].giver] -= 1
        self._load[chain[-1].taker] += 1

    def _preference(self, step: _Step, number: int) -> int:
        """The preference for moving a partition: best back to its former owner (2), worst away from it (0)."""
        owner = self._before.get(TopicPartition(step.topic, number))
        return 2 if owner == step.taker else int(owner != step.giver)


def _chain(steps_to: Mapping[str, _Step], last: str) -> list[_Step]:
    steps = []
    while last in steps_to:
        steps.append(steps_to[last])
        last = steps_to[last].giver
    return steps[::-1]
