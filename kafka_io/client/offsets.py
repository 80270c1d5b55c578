"""How far groups have read, in every generation: kept in ZooKeeper (0.7 to 0.9) or by a coordinator (from 0.8.2 on).

Nobody joins a group for this. A group whose members are alive takes offsets only from them.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Protocol

from kafka_io.client.cluster import Cluster
from kafka_io.client.link import Patience
from kafka_io.client.membership import NOBODY, Membership
from kafka_io.client.modern.cluster import ModernCluster
from kafka_io.client.modern.offsets import CoordinatorOffsets
from kafka_io.client.v07.cluster import Cluster07
from kafka_io.errors import Unsupported, Where, placing
from kafka_io.model import BrokerPartition, Generation
from kafka_io.registry.offsets import Committed
from kafka_io.registry.zookeeper import Registry


class Storage(StrEnum):
    """Where the offsets of groups are kept. Consumers of 0.8.2 and 0.9 call it `offsets.storage`.

    >>> Storage("coordinator") is Storage.COORDINATOR
    True
    """

    ZOOKEEPER = "zookeeper"
    COORDINATOR = "coordinator"


class GroupOffsets(Protocol):
    """The offsets of a cluster's groups. What can be tried again is, as often as the cluster's patience allows.

    >>> with open_cluster("local", bootstrap=bootstrap) as cluster:
    ...     offsets: GroupOffsets = group_offsets(cluster)
    ...     offsets.fetch("nobody", ["views"])
    {'views': {}}
    """

    def fetch(self, group: str, topics: Iterable[str] | None = None) -> Committed:
        """How far the group has read these topics, or all that it has offsets of.

        Raises:
            KafkaIOError: it cannot be told.
        """
        ...

    def commit(
        self, group: str, offsets: Mapping[str, Mapping[BrokerPartition, int]], *, member: Membership = NOBODY
    ) -> None:
        """Keep offsets of the group; some may be kept although others were refused.

        Raises:
            BrokerError: one was refused, as while the group has members and `member` is none of them.
            KafkaIOError: what became of them is not known.
        """
        ...


class RegistryOffsets:
    """See GroupOffsets. In ZooKeeper a commit is unconditional: whoever writes last is right."""

    def __init__(self, registry: Registry, *, cluster: str, timeout_s: float | None = None) -> None:
        self._registry = registry
        self._cluster = cluster
        self._timeout_s = timeout_s

    def fetch(self, group: str, topics: Iterable[str] | None = None) -> Committed:
        """See GroupOffsets."""
        with placing(Where(cluster=self._cluster)):
            return self._registry.group_offsets(group, topics)

    def commit(
        self,
        group: str,
        offsets: Mapping[str, Mapping[BrokerPartition, int]],
        *,
        member: Membership = NOBODY,  # noqa: ARG002 - ZooKeeper asks nobody who they are
    ) -> None:
        """See GroupOffsets."""
        with placing(Where(cluster=self._cluster)):
            self._registry.commit_group_offsets(group, offsets, timeout_s=self._timeout_s)


def group_offsets(
    cluster: Cluster, storage: Storage | None = None, *, patience: Patience | None = None
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
        storage: by default where tools of its generation look: ZooKeeper up to 0.9 if the cluster is found through
            it, else the coordinator.
        patience: in the place of the cluster's own.

    Raises:
        Unsupported: the cluster keeps none there.
        NetworkError: no broker can be reached that would tell what it speaks.
    """
    match cluster:
        case Cluster07():
            registry: Registry | None = cluster.registry
            storage = storage or Storage.ZOOKEEPER
        case ModernCluster():
            registry = cluster.registry
            old = storage is None and registry is not None and cluster.generation is Generation.V08
            storage = storage or (Storage.ZOOKEEPER if old else Storage.COORDINATOR)
            if storage is Storage.COORDINATOR:
                return CoordinatorOffsets(cluster.brokers(patience))
        case _:
            raise Unsupported("no client of this cluster knows groups", Where(cluster=cluster.name))
    if registry is None or storage is Storage.COORDINATOR:
        raise Unsupported(f"this cluster keeps no offsets by {storage}", Where(cluster=cluster.name))
    return RegistryOffsets(registry, cluster=cluster.name, timeout_s=patience.timeout_s if patience else None)
