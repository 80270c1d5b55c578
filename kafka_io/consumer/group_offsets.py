"""The committed offsets of groups in every generation: in ZooKeeper (0.7 to 0.9) or a coordinator (from 0.8.2 on).

No membership is needed to read them. A coordinator accepts commits to a group with live members only from them.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Protocol

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.cluster.cluster import Cluster
from kafka_io.consumer.coordinator_offsets import CoordinatorOffsets
from kafka_io.consumer.membership import NOBODY, GroupMembership
from kafka_io.errors import Unsupported, Where, error_context
from kafka_io.model import BrokerPartition, Generation
from kafka_io.zookeeper.offsets import CommittedOffsets
from kafka_io.zookeeper.zookeeper import ZooKeeper


class OffsetStorage(StrEnum):
    """Where the offsets of groups are stored; consumers of 0.8.2 and 0.9 call it `offsets.storage`.

    >>> OffsetStorage("coordinator") is OffsetStorage.COORDINATOR
    True
    """

    ZOOKEEPER = "zookeeper"
    COORDINATOR = "coordinator"


class GroupOffsets(Protocol):
    """The offsets of a cluster's groups. Requests are retried as often as the cluster's retry policy allows.

    >>> with open_cluster("local", bootstrap=bootstrap) as cluster:
    ...     offsets: GroupOffsets = group_offsets(cluster)
    ...     offsets.fetch("nobody", ["views"])
    {'views': {}}
    """

    def fetch(self, group: str, topics: Iterable[str] | None = None) -> CommittedOffsets:
        """The group's committed offsets of these topics; None returns those of all topics.

        Raises:
            KafkaIOError: the offsets cannot be read.
        """

    def commit(
        self, group: str, offsets: Mapping[str, Mapping[BrokerPartition, int]], *, member: GroupMembership = NOBODY
    ) -> None:
        """Commit offsets of the group; some may be stored although others were refused.

        Raises:
            BrokerError: an offset was refused, for example because the group has members and `member` is not one.
            KafkaIOError: the outcome is unknown.
        """


class ZooKeeperOffsets:
    """The offsets in ZooKeeper; see GroupOffsets. A commit is unconditional: the last one counts."""

    def __init__(self, zookeeper: ZooKeeper, *, cluster: str, timeout_s: float | None = None) -> None:
        self._zookeeper = zookeeper
        self._cluster = cluster
        self._timeout_s = timeout_s

    def fetch(self, group: str, topics: Iterable[str] | None = None) -> CommittedOffsets:
        """The committed offsets of a group in ZooKeeper."""
        with error_context(Where(cluster=self._cluster)):
            return self._zookeeper.group_offsets(group, topics)

    def commit(
        self,
        group: str,
        offsets: Mapping[str, Mapping[BrokerPartition, int]],
        *,
        member: GroupMembership = NOBODY,  # noqa: ARG002 - ZooKeeper does not check the membership
    ) -> None:
        """Write the offsets of a group to ZooKeeper."""
        with error_context(Where(cluster=self._cluster)):
            self._zookeeper.commit_group_offsets(group, offsets, timeout_s=self._timeout_s)


def group_offsets(
    cluster: Cluster, storage: OffsetStorage | None = None, *, retry_policy: RetryPolicy | None = None
) -> GroupOffsets:
    """The offsets of the cluster's groups, for as long as the cluster is open.

        >>> from kafka_io import BrokerPartition, group_offsets, open_cluster
        >>> with open_cluster("local", bootstrap=bootstrap) as cluster:
        ...     offsets = group_offsets(cluster)
        ...     offsets.commit("old-loader", {"clicks": {BrokerPartition(None, 0): 2}})
        ...     offsets.fetch("old-loader")
        {'clicks': {BrokerPartition(broker=None, partition=0): 2}}

    Args:
        cluster: of any generation.
        storage: where the offsets are. None is the place where the tools of the generation look: ZooKeeper up to 0.9
            if the cluster was opened through it, otherwise the coordinator.
        retry_policy: replaces the cluster's own.

    Raises:
        Unsupported: the cluster has no such storage.
        NetworkError: no broker can be reached to detect the generation.
    """
    zookeeper = cluster.zookeeper
    if storage is None:
        in_zookeeper = zookeeper is not None and cluster.generation in {Generation.V07, Generation.V08}
        storage = OffsetStorage.ZOOKEEPER if in_zookeeper else OffsetStorage.COORDINATOR
    if storage is OffsetStorage.COORDINATOR:
        return CoordinatorOffsets(cluster.metadata(retry_policy))
    if zookeeper is None:
        raise Unsupported(
            "this cluster was opened without a ZooKeeper, so it keeps no offsets there", Where(cluster=cluster.name)
        )
    return ZooKeeperOffsets(zookeeper, cluster=cluster.name, timeout_s=retry_policy.timeout_s if retry_policy else None)
