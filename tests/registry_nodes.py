"""Nodes of the registry that Penstock itself does not read: tests check with them what brokers wrote there."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_io.registry.brokers import brokers_in_order
from kafka_io.registry.endpoints import RegisteredBroker
from kafka_io.registry.json_text import JsonObject
from kafka_io.registry.listing import collect
from kafka_io.registry.paths import MAX_PARTITIONS, check_topic_name, partitions_path, state_path
from kafka_io.registry.session import ZooKeeperQueries
from kafka_io.registry.text import number
from kafka_io.registry.topics import topic_names
from kafka_io.registry.zookeeper import Listing, Registry

_MAX_VALUE_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """Who leads a partition; `leader` is -1 while nobody does. `isr` are the replicas that are in sync."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int


def parse_state(path: str, data: bytes) -> PartitionState:
    """The state of the partition whose node is `path`.

    Raises:
        NodeMalformed: the value cannot be one.
    """
    node = JsonObject.parse(path, data, max_bytes=_MAX_VALUE_BYTES)
    return PartitionState(
        leader=node.integer("leader", min_value=-1),
        leader_epoch=node.integer("leader_epoch"),
        isr=node.integers("isr"),
        controller_epoch=node.integer("controller_epoch"),
    )


def registered_brokers(registry: Registry) -> Listing[RegisteredBroker]:
    """The brokers by id, each with all its endpoints and its rack."""
    return registry._session.in_one_session(lambda queries: collect(lambda skip: brokers_in_order(queries, skip)))


def partition_states(registry: Registry, topic: str) -> Mapping[int, PartitionState]:
    """The leader of each partition of a topic of 0.8 or later; empty in 0.7."""
    check_topic_name(topic)
    return registry._session.in_one_session(lambda queries: _read_states(queries, topic))


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
