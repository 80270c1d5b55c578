"""Reads and writes the offsets of groups of 0.7 to 0.9 in ZooKeeper."""

from collections.abc import Iterable, Mapping

from kafka_io.errors import RegistryError
from kafka_io.model import BrokerPartition, TopicPartition
from kafka_io.registry.consumers import (
    format_offset,
    offset_path,
    offsets_path,
    parse_offset,
    parse_partition,
    topic_offsets_path,
)
from kafka_io.registry.registration import make_parents
from kafka_io.registry.session import ZooKeeperQueries

CommittedOffsets = dict[str, dict[BrokerPartition, int | None]]
"""The next offset to read by topic and partition, in bytes of the log in 0.7; None if the group has no offset."""


def offsets_by_partition(committed: CommittedOffsets) -> dict[TopicPartition, int]:
    """The committed offsets of those partitions that have one."""
    return {
        TopicPartition.of(topic, partition): offset
        for topic, offsets in committed.items()
        for partition, offset in offsets.items()
        if offset is not None
    }


def offsets_by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[BrokerPartition, int]]:
    """The inverse of `offsets_by_partition`."""
    topics: dict[str, dict[BrokerPartition, int]] = {}
    for partition, offset in offsets.items():
        topics.setdefault(partition.topic, {})[partition.within_topic] = offset
    return topics


def read_offsets(queries: ZooKeeperQueries, group: str, topics: Iterable[str] | None) -> CommittedOffsets:
    """The offsets of a group for these topics, or for all topics that it has; empty for a topic without offsets.

    Raises:
        NodeMalformed: the name of a node is not a partition, or its value is not an offset.
    """
    names = _children(queries, offsets_path(group)) if topics is None else topics
    return {topic: _topic_offsets(queries, group, topic) for topic in sorted(names)}


def _topic_offsets(queries: ZooKeeperQueries, group: str, topic: str) -> dict[BrokerPartition, int | None]:
    parent = topic_offsets_path(group, topic)
    paths = sorted(f"{parent}/{name}" for name in _children(queries, parent))
    return {
        parse_partition(path): parse_offset(path, content.value) for path, content in queries.contents(paths) if content
    }


def _children(queries: ZooKeeperQueries, path: str) -> tuple[str, ...]:
    node = queries.node(path)
    return node.children if node else ()


def write_offsets(queries: ZooKeeperQueries, group: str, offsets: Mapping[str, Mapping[BrokerPartition, int]]) -> None:
    """Write offsets as a consumer does: one node after the other, unconditionally.

    See [kafka-0.7: Consumer registry].
    """
    for topic, partitions in offsets.items():
        for id_, offset in sorted(partitions.items()):
            _put(queries, offset_path(group, topic, id_), format_offset(offset))


def _put(queries: ZooKeeperQueries, path: str, value: bytes) -> None:
    if queries.change(path, value):
        return
    make_parents(queries, path)
    if queries.create(path, value) is None:
        raise RegistryError(f"the node {path!r} cannot be created: another client deletes its parent nodes")
    queries.change(path, value)  # another client may have created it in the meantime
