"""Reading and writing the offsets that groups of 0.7 to 0.9 keep in ZooKeeper."""

from collections.abc import Iterable, Mapping

from kafka_io.errors import RegistryError
from kafka_io.model import BrokerPartition
from kafka_io.registry.consumers import (
    format_offset,
    offset_path,
    offsets_path,
    parse_offset,
    parse_partition,
    topic_offsets_path,
)
from kafka_io.registry.registration import make_parents
from kafka_io.registry.session import Asking

Committed = dict[str, dict[BrokerPartition, int | None]]
"""By topic and partition the next offset to read, in bytes of the log in 0.7; None where a group has none."""


def read_offsets(asking: Asking, group: str, topics: Iterable[str] | None) -> Committed:
    """What the group keeps of these topics, or of all that it has; a topic that it has nothing of is empty.

    Raises:
        NodeMalformed: a node is neither a partition nor an offset.
    """
    named = _children(asking, offsets_path(group)) if topics is None else topics
    return {topic: _of_topic(asking, group, topic) for topic in sorted(named)}


def _of_topic(asking: Asking, group: str, topic: str) -> dict[BrokerPartition, int | None]:
    above = topic_offsets_path(group, topic)
    paths = sorted(f"{above}/{name}" for name in _children(asking, above))
    return {
        parse_partition(path): parse_offset(path, content.value) for path, content in asking.contents(paths) if content
    }


def _children(asking: Asking, path: str) -> tuple[str, ...]:
    node = asking.node(path)
    return node.children if node else ()


def write_offsets(asking: Asking, group: str, offsets: Mapping[str, Mapping[BrokerPartition, int]]) -> None:
    """Keep the offsets, as a consumer does: one node after the other, unconditionally (facts, 6)."""
    for topic, parts in offsets.items():
        for id_, offset in sorted(parts.items()):
            _put(asking, offset_path(group, topic, id_), format_offset(offset))


def _put(asking: Asking, path: str, value: bytes) -> None:
    if asking.change(path, value):
        return
    make_parents(asking, path)
    if asking.create(path, value) is None:
        raise RegistryError(f"{path!r} cannot be made: somebody deletes the nodes above it")
    asking.change(path, value)  # somebody else may have made it meanwhile
