"""What groups there are, who their members are, and how far they are behind."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from kafka_io.client.cluster import Cluster
from kafka_io.client.group.protocol import TYPE, decode_assignment, decode_subscription
from kafka_io.client.modern.bounds import bounds_of
from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.cluster import ModernCluster
from kafka_io.client.modern.coordinating import Coordinating
from kafka_io.client.modern.leading import Place
from kafka_io.client.modern.link import ModernLink
from kafka_io.client.modern.offsets import CoordinatorOffsets
from kafka_io.error_codes import MODERN, check
from kafka_io.errors import Corrupt, Unsupported, Where, placing
from kafka_io.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsRequest
from kafka_io.messages.list_groups import ListGroupsRequest
from kafka_io.messages.offset_fetch import OffsetFetchRequest
from kafka_io.model import Bounds, Broker

DEAD = "Dead"
"""The state of a group that does not exist, in the wire's word."""
_NOT_FOUND = 69  # from v6 of DescribeGroups on
_ALL_OFFSETS_SINCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """A group: its name, what its members do together, and its state, which brokers before 2.6 do not list.

    >>> [(one.name, one.protocol_type) for one in list_groups(cluster)]
    [('readers', 'consumer')]
    """

    name: str
    protocol_type: str
    state: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member, who its client says it is, what it subscribes to and what it reads.

    >>> [member] = describe_group(cluster, "readers").members
    >>> member.client_id, sorted(member.topics), sorted(member.assignment)
    ('penstock', ['clicks'], [('clicks', 0)])
    """

    id: str
    instance_id: str | None
    client_id: str
    host: str
    topics: frozenset[str]
    assignment: frozenset[Place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far a partition is read: up to the group's offset, of a log that ends at `end`; None for what is not known.

    >>> from kafka_io import Lag
    >>> Lag(committed=40, end=42).records
    2
    """

    committed: int | None
    end: int | None

    @property
    def records(self) -> int | None:
        """How many offsets are left to read."""
        return None if self.committed is None or self.end is None else max(0, self.end - self.committed)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """One group as its coordinator sees it; its members' parts are known while it is stable.

    >>> found = describe_group(cluster, "readers")
    >>> found.state, found.assignor, found.lags["clicks", 0].records
    ('Stable', 'range', 0)
    """

    name: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: Broker
    members: tuple[GroupMember, ...]
    lags: Mapping[Place, Lag]


def list_groups(cluster: Cluster) -> tuple[GroupListing, ...]:
    """All groups of the cluster: those that each of its brokers coordinates, by name.

    Raises:
        Unsupported: the cluster is older than 0.9.
        KafkaIOError: a broker cannot tell.
    """
    brokers = _brokers_of(cluster)
    with placing(Where(cluster=cluster.name)):
        nodes = [Broker(one.node_id, one.host, one.port) for one in brokers.all_topics().brokers]
        found = {one.name: one for node in nodes for one in brokers.patiently(partial(_of, brokers, node))}
    return tuple(found[name] for name in sorted(found))


def describe_group(cluster: Cluster, group: str) -> GroupDescription:
    """The members of a group, and how far each partition is read that it has an offset of, or that a member reads.

    A group that does not exist is in the state DEAD.

    Raises:
        Unsupported: the cluster is older than 0.9.
        KafkaIOError: the coordinator or a leader cannot tell.
    """
    brokers = _brokers_of(cluster)
    coordinating = Coordinating(brokers, group)
    with placing(Where(cluster=cluster.name)):
        found = coordinating.on(lambda link: _described(link, group))
        readable = found.protocol_type in (TYPE, "")
        members = tuple(_member(one) for one in found.members) if readable else ()
        return GroupDescription(
            name=group,
            state=DEAD if found.error_code == _NOT_FOUND else found.group_state,
            protocol_type=found.protocol_type,
            assignor=found.protocol_data,
            coordinator=coordinating.link().broker,
            members=members,
            lags=_lags(brokers, coordinating, frozenset[Place]().union(*(one.assignment for one in members))),
        )


def _brokers_of(cluster: Cluster) -> Brokers:
    if not isinstance(cluster, ModernCluster):
        raise Unsupported("brokers of 0.7 keep no groups", Where(cluster=cluster.name))
    return cluster.brokers()


def _of(brokers: Brokers, node: Broker) -> Iterable[GroupListing]:
    link = brokers.link(node)
    with placing(link.where):
        answer = link.request(ListGroupsRequest())
        check(answer.error_code, Where(), MODERN)
    return [
        GroupListing(name=one.group_id, protocol_type=one.protocol_type, state=one.group_state or None)
        for one in answer.groups
    ]


def _described(link: ModernLink, group: str) -> DescribedGroup:
    for found in link.request(DescribeGroupsRequest(groups=(group,))).groups:
        if found.group_id == group:
            if found.error_code != _NOT_FOUND:
                check(found.error_code, Where(), MODERN)
            return found
    raise Corrupt("an answer without the group that was asked for")


def _member(one: DescribedGroupMember) -> GroupMember:
    said = decode_subscription(one.member_metadata) if len(one.member_metadata) else None
    return GroupMember(
        id=one.member_id,
        instance_id=one.group_instance_id,
        client_id=one.client_id,
        host=one.client_host,
        topics=frozenset(said.topics if said else ()),
        assignment=decode_assignment(one.member_assignment),
    )


def _lags(brokers: Brokers, coordinating: Coordinating, assigned: frozenset[Place]) -> dict[Place, Lag]:
    """Brokers before 0.10 tell offsets of topics that are named only: of those that members read."""
    version = coordinating.on(lambda link: link.versions.pick(OffsetFetchRequest.API))
    topics = None if version >= _ALL_OFFSETS_SINCE else {topic for topic, _ in assigned}
    told = CoordinatorOffsets(brokers).fetch(coordinating.group, topics)
    committed = {(topic, one.partition): offset for topic, parts in told.items() for one, offset in parts.items()}
    places = assigned | {place for place, offset in committed.items() if offset is not None}
    ends = bounds_of(brokers, places, committed=False)
    return {
        place: Lag(committed=committed.get(place), end=end.latest if isinstance(end, Bounds) else None)
        for place, end in sorted(ends.items(), key=lambda row: row[0])
    }
