"""The groups of a cluster, their members and their lag."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.coordinators import CoordinatorConnection
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.cluster.bounds import bounds_of
from kafka_io.cluster.cluster import Cluster
from kafka_io.consumer.coordinator_offsets import CoordinatorOffsets
from kafka_io.consumer.group.protocol import TYPE, decode_assignment, decode_subscription
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import Unsupported, Where, error_context
from kafka_io.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsRequest
from kafka_io.messages.list_groups import ListGroupsRequest
from kafka_io.model import Bounds, Broker, TopicPartition
from kafka_io.zookeeper.offsets import offsets_by_partition

DEAD = "Dead"
"""The state of a group that does not exist; Kafka's own name for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """A group: its name, its protocol type, and its state, which brokers before 2.6 do not list.

    >>> [(group.name, group.protocol_type) for group in list_groups(cluster)]
    [('readers', 'consumer')]
    """

    name: str
    protocol_type: str
    state: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member: the identity that its client gives, its subscribed topics and its assigned partitions.

    >>> [member] = describe_group(cluster, "readers").members
    >>> member.client_id, sorted(member.topics), [str(partition) for partition in member.assignment]
    ('penstock', ['clicks'], ['clicks-0'])
    """

    id: str
    instance_id: str | None
    client_id: str
    host: str
    topics: frozenset[str]
    assignment: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """A partition's committed offset and the end of its log; None for what is not known.

    >>> from kafka_io import Lag
    >>> Lag(committed=40, end=42).records
    2
    """

    committed: int | None
    end: int | None

    @property
    def records(self) -> int | None:
        """The number of offsets that are left to read."""
        return None if self.committed is None or self.end is None else max(0, self.end - self.committed)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """One group as its coordinator sees it; the members' assignments are known while the group is stable.

    >>> description = describe_group(cluster, "readers")
    >>> description.state, description.assignor, description.lags[TopicPartition("clicks", 0)].records
    ('Stable', 'range', 0)
    """

    name: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: Broker
    members: tuple[GroupMember, ...]
    lags: Mapping[TopicPartition, Lag]


def list_groups(cluster: Cluster) -> tuple[GroupListing, ...]:
    """All groups of the cluster by name, collected from all its brokers.

    Raises:
        Unsupported: the cluster is older than 0.9.
        KafkaIOError: a broker did not answer, or refused.
    """
    metadata = cluster.metadata()
    with error_context(Where(cluster=cluster.name)):
        nodes = metadata.all_topics().brokers
        brokers = [Broker.advertised(node.node_id, node.host, node.port) for node in nodes]
        listings = {
            listing.name: listing
            for broker in brokers
            for listing in metadata.retry(partial(_coordinated_groups, metadata, broker))
        }
    return tuple(listings[name] for name in sorted(listings))


def describe_group(cluster: Cluster, group: str) -> GroupDescription:
    """The members of a group, and the lag of each partition that has a committed offset or is assigned to a member.

    A group that does not exist has the state DEAD.

    Raises:
        Unsupported: the cluster is older than 0.9.
        KafkaIOError: the coordinator or a leader did not answer, or refused.
    """
    metadata = cluster.metadata()
    coordinator = CoordinatorConnection(metadata, group)
    with error_context(Where(cluster=cluster.name)):
        described = coordinator.on(lambda connection: _described(connection, group))
        readable = described.protocol_type in (TYPE, "")
        members = tuple(_member(member) for member in described.members) if readable else ()
        assigned = frozenset[TopicPartition]().union(*(member.assignment for member in members))
        return GroupDescription(
            name=group,
            state=DEAD if described.error_code == ErrorCode.GROUP_ID_NOT_FOUND else described.group_state,
            protocol_type=described.protocol_type,
            assignor=described.protocol_data,
            coordinator=coordinator.connection().broker,
            members=members,
            lags=_lags(metadata, group, assigned),
        )


def _coordinated_groups(metadata: ClusterMetadata, broker: Broker) -> Iterable[GroupListing]:
    connection = metadata.connection(broker)
    with error_context(connection.where):
        answer = connection.request(ListGroupsRequest())
        ErrorCode.check(answer.error_code, Where(), right="DESCRIBE")
    return [
        GroupListing(name=group.group_id, protocol_type=group.protocol_type, state=group.group_state or None)
        for group in answer.groups
    ]


def _described(connection: ModernBrokerConnection, group: str) -> DescribedGroup:
    [described] = connection.request(DescribeGroupsRequest(groups=(group,))).groups
    if described.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
        ErrorCode.check(described.error_code, Where(), right="DESCRIBE")
    return described


def _member(member: DescribedGroupMember) -> GroupMember:
    # The metadata is empty while the group rebalances.
    subscription = decode_subscription(member.member_metadata) if len(member.member_metadata) else None
    return GroupMember(
        id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        topics=frozenset(subscription.topics if subscription else ()),
        assignment=decode_assignment(member.member_assignment),
    )


def _lags(metadata: ClusterMetadata, group: str, assigned: frozenset[TopicPartition]) -> dict[TopicPartition, Lag]:
    offsets = CoordinatorOffsets(metadata)
    try:
        committed = offsets_by_partition(offsets.fetch(group))
    except Unsupported:  # brokers before 0.10 return offsets only of named topics
        committed = offsets_by_partition(offsets.fetch(group, {partition.topic for partition in assigned}))
    bounds = bounds_of(metadata, assigned | committed.keys(), committed=False)
    return {
        partition: Lag(committed=committed.get(partition), end=end.latest if isinstance(end, Bounds) else None)
        for partition, end in sorted(bounds.items(), key=lambda item: item[0])
    }
