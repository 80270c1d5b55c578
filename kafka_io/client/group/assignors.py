"""Who reads what: the assignors that Kafka's own clients have, by the names they have there.

A group's leader may be any client, so an assignor says and reads what the others do, and puts members in their order:
static ones first, by their names, then the others by their ids.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

from kafka_io.client.group.protocol import (
    NOTHING,
    Held,
    Subscription,
    decode_owned,
    decode_sticky,
    encode_generation,
    encode_sticky,
)
from kafka_io.client.group.sticky import Sharing
from kafka_io.client.modern.leading import Place

Partitions = Mapping[str, int]
"""How many partitions each topic has. A topic that nobody knows is left out."""
Shares = dict[str, frozenset[Place]]
"""By member, what it is to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One of those that partitions are shared out to; `held` is what it says it has, or had."""

    id: str
    instance_id: str | None = None
    topics: frozenset[str]
    held: Held = NOTHING

    @property
    def order(self) -> tuple[bool, str, str]:
        """Static members come first, so that those that come and go do not change what they read."""
        return self.instance_id is None, self.instance_id or self.id, self.id


def _no_data(_held: Held) -> bytes:
    return b""


def _no_claims(_subscription: Subscription) -> Held:
    return NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignor:
    """A way to share out partitions, under the name by which a group's members agree on it.

    Args:
        name: as all clients know it.
        share: each member's part, for members in their order.
        cooperative: members keep what they have while they join (KIP-429); else they give up all before.
        user_data: what is said beside the subscription.
        held: what a member has, as its subscription says.

    >>> from kafka_io.client.group.assignors import ASSIGNORS, Member
    >>> members = [Member(id=name, topics=frozenset(["clicks"])) for name in ("a", "b")]
    >>> shares = ASSIGNORS["range"].share(members, {"clicks": 3})
    >>> sorted(shares["a"]), sorted(shares["b"])
    ([('clicks', 0), ('clicks', 1)], [('clicks', 2)])
    """

    name: str
    share: Callable[[Sequence[Member], Partitions], Shares]
    cooperative: bool = False
    user_data: Callable[[Held], bytes] = _no_data
    held: Callable[[Subscription], Held] = _no_claims

    def assign(self, members: Iterable[Member], partitions: Partitions) -> Shares:
        """Each member's part, whatever order they come in."""
        return self.share(sorted(members, key=lambda member: member.order), partitions)


def share_ranges(members: Sequence[Member], partitions: Partitions) -> Shares:
    """Of each topic a range for each member that subscribes to it; the first ones get those that are left over."""
    shares: dict[str, set[Place]] = {member.id: set() for member in members}
    for topic, count in partitions.items():
        readers = [member.id for member in members if topic in member.topics]
        start = 0
        for rank, reader in enumerate(readers):
            stop = start + count // len(readers) + (rank < count % len(readers))
            shares[reader].update((topic, number) for number in range(start, stop))
            start = stop
    return _frozen(shares)


def share_round_robin(members: Sequence[Member], partitions: Partitions) -> Shares:
    """All partitions by turns; a member is passed over where it does not subscribe to the topic."""
    shares: dict[str, set[Place]] = {member.id: set() for member in members}
    turns = cycle(members)
    wanted = frozenset[str]().union(*(member.topics for member in members))
    for topic, count in sorted(partitions.items()):
        if topic not in wanted:
            continue
        for number in range(count):
            reader = next(member for member in turns if topic in member.topics)
            shares[reader.id].add((topic, number))
    return _frozen(shares)


def share_sticky(members: Sequence[Member], partitions: Partitions) -> Shares:
    """As even as can be, and as much as that allows stays where it is (KIP-54; see `sticky`)."""
    topics = {topic: [member.id for member in members if topic in member.topics] for topic in partitions}
    wanted = {topic: partitions[topic] for topic, readers in topics.items() if readers}
    places = [(topic, number) for topic, count in wanted.items() for number in range(count)]
    return Sharing([member.id for member in members], topics, _owners(members, wanted)).share(places)


def share_cooperatively(members: Sequence[Member], partitions: Partitions) -> Shares:
    """As `share_sticky`; but what another member still has is for nobody yet (KIP-429).

    That member gives it up as it is told what it is to read, and has the group share out once more.
    """
    claims: dict[Place, set[str]] = {}
    for member in members:
        for place in member.held.places:
            claims.setdefault(place, set()).add(member.id)
    owners = _owners(members, partitions)
    return {
        reader: frozenset(
            place for place in share if owners.get(place) == reader or claims.get(place, {reader}) == {reader}
        )
        for reader, share in share_sticky(members, partitions).items()
    }


def _owners(members: Sequence[Member], partitions: Partitions) -> dict[Place, str]:
    """Who has each partition: whoever says so of the latest generation, and nobody where two do of the same."""
    claims: dict[Place, list[tuple[int, str]]] = {}
    for member in members:
        for topic, number in member.held.places:
            if topic in member.topics and number < partitions.get(topic, 0):
                claims.setdefault((topic, number), []).append((member.held.generation, member.id))
    owners = {}
    for place, rivals in claims.items():
        newest = max(generation for generation, _ in rivals)
        latest = [member for generation, member in rivals if generation == newest]
        if len(latest) == 1:
            owners[place] = latest[0]
    return owners


def _frozen(shares: Mapping[str, set[Place]]) -> Shares:
    return {member: frozenset(places) for member, places in shares.items()}


RANGE = Assignor(name="range", share=share_ranges)
ROUND_ROBIN = Assignor(name="roundrobin", share=share_round_robin)
STICKY = Assignor(
    name="sticky", share=share_sticky, user_data=encode_sticky, held=lambda said: decode_sticky(said.user_data)
)
COOPERATIVE_STICKY = Assignor(
    name="cooperative-sticky",
    share=share_cooperatively,
    cooperative=True,
    user_data=encode_generation,
    held=decode_owned,
)
ASSIGNORS: Mapping[str, Assignor] = {one.name: one for one in (RANGE, ROUND_ROBIN, STICKY, COOPERATIVE_STICKY)}
