"""Nodes with the offsets of groups of 0.7 to 0.9, as text [kafka-0.7: Consumer registry].

/consumers/<group>/offsets/<topic>/<broker>-<partition>   0.7: a position in the log, in bytes
/consumers/<group>/offsets/<topic>/<partition>            0.8, 0.9: a record's number

The value is the next offset to read, in decimal. In 0.7 a message always starts there: inside a compressed message,
consumers store the start of that message and read it again completely. Consumers write -1 if they could not ask a
broker; it means that there is no offset.
"""

import re

from kafka_io.errors import NodeMalformed
from kafka_io.model import BrokerPartition
from kafka_io.registry.text import malformed, number, shown, text_of

CONSUMERS = "/consumers"

_MAX_VALUE_BYTES = 64
_MAX_ID = 2**31 - 1
_MAX_OFFSET = 2**63 - 1
_OFFSET = re.compile(r"0|-1|[1-9][0-9]{0,18}")
_PARTITION = re.compile(r"(?:(?P<broker>[0-9]+)-)?(?P<partition>[0-9]+)")
_NO_OFFSET = -1


def check_group_name(group: str) -> None:
    """Check that a group can have this name, which becomes the name of its node.

    Raises:
        NodeMalformed: the name is illegal.
    """
    if not group.isprintable() or group in {"", ".", ".."} or "/" in group:
        raise NodeMalformed(f"{shown(group)} is not a legal group name")


def offsets_path(group: str) -> str:
    """The parent of the nodes of all topics that the group has offsets of."""
    return f"{CONSUMERS}/{group}/offsets"


def topic_offsets_path(group: str, topic: str) -> str:
    """The parent of the offset nodes of a topic's partitions."""
    return f"{offsets_path(group)}/{topic}"


def offset_path(group: str, topic: str, id_: BrokerPartition) -> str:
    """The node with the offset of a partition."""
    return f"{topic_offsets_path(group, topic)}/{id_}"


def parse_partition(path: str) -> BrokerPartition:
    """The partition of an offset node.

    Raises:
        NodeMalformed: the last part of the path is not a partition.
    """
    name = path.rpartition("/")[2]
    match = _PARTITION.fullmatch(name)
    if match is None:
        raise malformed(path, f"{shown(name)} is not a partition")
    broker = match["broker"]
    return BrokerPartition(
        None if broker is None else number(path, broker, min_value=0, max_value=_MAX_ID),
        number(path, match["partition"], min_value=0, max_value=_MAX_ID),
    )


def parse_offset(path: str, data: bytes) -> int | None:
    """The next offset to read; None if the node says that there is no offset.

    Raises:
        NodeMalformed: the value is not an offset.
    """
    text = text_of(path, data, max_bytes=_MAX_VALUE_BYTES)
    if not _OFFSET.fullmatch(text) or int(text) > _MAX_OFFSET:
        raise malformed(path, f"{shown(text)} is not an offset")
    return None if int(text) == _NO_OFFSET else int(text)


def format_offset(offset: int) -> bytes:
    """The value of an offset node."""
    return str(offset).encode()
