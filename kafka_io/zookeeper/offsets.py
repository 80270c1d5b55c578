"""Offsets of groups of 0.7 to 0.9 in ZooKeeper: the nodes, and how they are read and written.

/consumers/<group>/offsets/<topic>/<broker>-<partition>   0.7: a position in the log, in bytes
/consumers/<group>/offsets/<topic>/<partition>            0.8, 0.9: the number of a record

See [kafka-0.7: Consumer registry]. The value is the next offset to read, in decimal. In 0.7 a message always starts
there: inside a compressed message, consumers store the start of that message and read it again completely. Consumers
write -1 if they could not ask a broker; it means that there is no offset.
"""

from collections.abc import Iterable, Mapping

from kafka_io.errors import RegistryError
from kafka_io.model import BrokerPartition, TopicPartition
from kafka_io.zookeeper.node_values import MAX_ID, number, text_of
from kafka_io.zookeeper.paths import CONSUMERS
from kafka_io.zookeeper.registration import create_with_parents
from kafka_io.zookeeper.session import ZooKeeperQueries

CommittedOffsets = dict[str, dict[BrokerPartition, int | None]]
"""The next offset to read by topic and partition, in bytes of the log in 0.7; None if the group has no offset."""

_MAX_VALUE_BYTES = 64
_MAX_OFFSET = 2**63 - 1
_NO_OFFSET = "-1"


def offset_path(group: str, topic: str, partition: BrokerPartition) -> str:
    """The node with the offset of a partition."""
    return f"{CONSUMERS}/{group}/offsets/{topic}/{partition}"


def parse_partition(path: str) -> BrokerPartition:
    """The partition of an offset node.

    Raises:
        NodeMalformed: the last part of the path is not a partition.
    """
    broker, dash, partition = path.rpartition("/")[2].rpartition("-")
    return BrokerPartition(
        number(path, broker, min_value=0, max_value=MAX_ID) if dash else None,
        number(path, partition, min_value=0, max_value=MAX_ID),
    )


def parse_offset(path: str, data: bytes) -> int | None:
    """The next offset to read; None if the node says that there is no offset.

    Raises:
        NodeMalformed: the value is not an offset.
    """
    text = text_of(path, data, max_bytes=_MAX_VALUE_BYTES)
    return None if text == _NO_OFFSET else number(path, text, min_value=0, max_value=_MAX_OFFSET)


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
    parent = f"{CONSUMERS}/{group}/offsets"
    names = queries.children(parent) if topics is None else topics
    return {topic: _topic_offsets(queries, f"{parent}/{topic}") for topic in sorted(names)}


def _topic_offsets(queries: ZooKeeperQueries, parent: str) -> dict[BrokerPartition, int | None]:
    paths = sorted(f"{parent}/{name}" for name in queries.children(parent))
    return {
        parse_partition(path): parse_offset(path, content.value) for path, content in queries.contents(paths) if content
    }


def write_offsets(queries: ZooKeeperQueries, group: str, offsets: Mapping[str, Mapping[BrokerPartition, int]]) -> None:
    """Write offsets as a consumer does: one node after the other, unconditionally.

    See [kafka-0.7: Consumer registry].

    Raises:
        RegistryError: a node cannot be created.
    """
    for topic, partitions in offsets.items():
        for partition, offset in sorted(partitions.items()):
            path, value = offset_path(group, topic, partition), str(offset).encode()
            if queries.change(path, value):
                continue
            if create_with_parents(queries, path, value) is None:
                raise RegistryError(f"the node {path!r} cannot be created: another client deletes its parent nodes")
            queries.change(path, value)  # another client may have created it in the meantime
