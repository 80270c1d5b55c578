"""Sharing out partitions so that members keep what they have, as far as balance allows.

What nobody has goes to the members with the least. Then partitions move, one at a time and each by the shortest chain
of members, from one with most to one with at least two fewer. Once no such chain is left no other assignment is more
even: this is an optimal semi-matching of partitions to members (Harvey, Ladner, Lovasz, Tamir). Members that subscribe
to the same topics differ by one partition at most, and keep as many as they can.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafka_io.client.modern.leading import Place

Topics = Mapping[str, Sequence[str]]
"""By topic, the members that subscribe to it."""
_LEAST_GAIN = 2  # a move between members that differ by less only swaps them


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A partition of `topic` goes from a member to the next on a chain."""

    giver: str
    topic: str


class Sharing:
    """An assignment while it is made: who has what, and who had it.

    Args:
        members: in the order that decides between equals.
        topics: their subscriptions.
        before: who has which partition now; only of topics that it subscribes to.
    """

    def __init__(self, members: Sequence[str], topics: Topics, before: Mapping[Place, str]) -> None:
        self._rank = {member: rank for rank, member in enumerate(members)}
        self._topics = topics
        self._before = before
        self._load = Counter(dict.fromkeys(members, 0))
        self._has: dict[str, dict[str, set[int]]] = {member: defaultdict(set) for member in members}

    def share(self, places: Iterable[Place]) -> dict[str, frozenset[Place]]:
        """Each member's part of these partitions."""
        fresh = []
        for place in sorted(places):
            if (owner := self._before.get(place)) is None:
                fresh.append(place)
            else:
                self._give(owner, place)
        # Those that few may have come first, while there still is a choice for the others.
        for place in sorted(fresh, key=lambda place: len(self._topics[place[0]])):
            self._give(min(self._topics[place[0]], key=self._order), place)
        while chain := self._improvement():
            self._move(*chain)
        return {
            member: frozenset((topic, number) for topic, numbers in has.items() for number in numbers)
            for member, has in self._has.items()
        }

    def _give(self, member: str, place: Place) -> None:
        self._has[member][place[0]].add(place[1])
        self._load[member] += 1

    def _order(self, member: str) -> tuple[int, int]:
        return self._load[member], self._rank[member]

    def _improvement(self) -> tuple[list[_Step], str] | None:
        """The steps from a member with most to one with at least two fewer, and that one."""
        least = min(self._load.values(), default=0)
        barren: set[str] = set()  # a search from a member with more has passed them in vain
        for member in sorted(self._load, key=self._order, reverse=True):
            if self._load[member] < least + _LEAST_GAIN:
                break
            if member not in barren and (found := self._search(member, barren)):
                return found
        return None

    def _search(self, first: str, barren: set[str]) -> tuple[list[_Step], str] | None:
        """The shortest chain from `first`; of those the one to the member with the least."""
        came: dict[str, _Step] = {}
        level = [first]
        seen = barren
        seen.add(first)
        while level:
            following = []
            for giver in level:
                for topic in sorted(topic for topic, numbers in self._has[giver].items() if numbers):
                    for taker in self._topics[topic]:
                        if taker not in seen:
                            seen.add(taker)
                            came[taker] = _Step(giver=giver, topic=topic)
                            following.append(taker)
            last = min(following, key=self._order, default=first)
            if self._load[first] >= self._load[last] + _LEAST_GAIN:
                return _chain(came, last), last
            level = following
        return None

    def _move(self, steps: Sequence[_Step], last: str) -> None:
        takers = [*(step.giver for step in steps[1:]), last]
        for step, taker in zip(steps, takers, strict=True):
            numbers = self._has[step.giver][step.topic]
            number = max(numbers, key=lambda number: (self._loss(step, taker, number), number))
            numbers.remove(number)
            self._has[taker][step.topic].add(number)
        self._load[steps[0].giver] -= 1
        self._load[last] += 1

    def _loss(self, step: _Step, taker: str, number: int) -> int:
        """How gladly a partition is moved: back to whom it was, rather than one that was another's, or its owner's."""
        owner = self._before.get((step.topic, number))
        return 2 if owner == taker else int(owner != step.giver)


def _chain(came: Mapping[str, _Step], last: str) -> list[_Step]:
    steps = []
    while last in came:
        steps.append(came[last])
        last = came[last].giver
    return steps[::-1]
