"""Reads nodes of ZooKeeper that Penstock itself does not read. Tests use them to check what brokers wrote."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_io.errors import NodeMalformed
from kafka_io.model import MAX_PARTITIONS
from kafka_io.zookeeper.brokers import list_endpoints
from kafka_io.zookeeper.listing import Listing, collect
from kafka_io.zookeeper.modern import Endpoint
from kafka_io.zookeeper.node_values import NodeObject, number
from kafka_io.zookeeper.paths import check_topic_name, partitions_path, state_path
from kafka_io.zookeeper.session import ZooKeeperQueries
from kafka_io.zookeeper.topics import topic_names
from kafka_io.zookeeper.zookeeper import ZooKeeper

_MAX_VALUE_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """The leader of a partition, -1 if it has none, and its in-sync replicas."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int


def parse_state(path: str, data: bytes) -> PartitionState:
    """The state of the partition whose node is `path`.

    Raises:
        NodeMalformed: the value is not a partition state.
    """
    node = NodeObject.parse(path, data, max_bytes=_MAX_VALUE_BYTES)
    isr = node.fields.get("isr")
    if not isinstance(isr, list) or not all(isinstance(replica, int) for replica in isr):
        raise NodeMalformed(f"{path}: the isr {isr!r} is not a list of numbers")
    return PartitionState(
        leader=node.integer("leader", min_value=-1),
        leader_epoch=node.integer("leader_epoch"),
        isr=tuple(isr),
        controller_epoch=node.integer("controller_epoch"),
    )


def registered_endpoints(zookeeper: ZooKeeper) -> Listing[tuple[Endpoint, ...]]:
    """All endpoints of each broker, sorted by the broker's id."""
    return zookeeper.in_one_session(lambda queries: collect(lambda skip: list_endpoints(queries, skip)))


def partition_states(zookeeper: ZooKeeper, topic: str) -> Mapping[int, PartitionState]:
    """The leader of each partition of a topic of 0.8 or later; empty in 0.7."""
    check_topic_name(topic)
    return zookeeper.in_one_session(lambda queries: _read_states(queries, topic))


def _read_states(queries: ZooKeeperQueries, name: str) -> Mapping[int, PartitionState]:
    """The states of a topic's partitions by number. A partition without a state is left out (fault Z07)."""
    node = queries.node(partitions_path(name))
    if node is None:
        topic_names(queries)
        return {}
    children = {state_path(name, child): child for child in node.children}
    return {
        number(path, children[path], min_value=0, max_value=MAX_PARTITIONS - 1): parse_state(path, content.value)
        for path, content in queries.contents(children)
        if content is not None
    }
