"""How far groups of 0.7 to 0.9 have read, as they keep it in ZooKeeper: pure text; facts, 6; seed 003.

/consumers/<group>/offsets/<topic>/<broker>-<partition>   0.7: a position in the log, in bytes
/consumers/<group>/offsets/<topic>/<partition>            0.8, 0.9: a record's number

The value is the next offset to read, in decimal. Of 0.7 it is always where a message starts: in the middle of a
compressed one consumers keep the start of that, and read it again as a whole. -1 is what they write where no broker
could be asked: no offset at all.
"""

import re

from kafka_io.errors import NodeMalformed
from kafka_io.model import BrokerPartition
from kafka_io.registry.text import malformed, number, shown, text_of

CONSUMERS = "/consumers"

_LONGEST_VALUE = 64
_LARGEST_ID = 2**31 - 1
_LARGEST_OFFSET = 2**63 - 1
_OFFSET = re.compile(r"0|-1|[1-9][0-9]{0,18}")
_PARTITION = re.compile(r"(?:(?P<broker>[0-9]+)-)?(?P<partition>[0-9]+)")
_NO_OFFSET = -1


def check_group_name(group: str) -> None:
    """`group` is a name that one node can have.

    Raises:
        NodeMalformed: it is not.
    """
    if not group.isprintable() or group in {"", ".", ".."} or "/" in group:
        raise NodeMalformed(f"no group may be named {shown(group)}")


def offsets_path(group: str) -> str:
    """The node below which each topic has one that the group has offsets of."""
    return f"{CONSUMERS}/{group}/offsets"


def topic_offsets_path(group: str, topic: str) -> str:
    """The node below which each partition of the topic has its offset."""
    return f"{offsets_path(group)}/{topic}"


def offset_path(group: str, topic: str, id_: BrokerPartition) -> str:
    """Where the offset of a partition is."""
    return f"{topic_offsets_path(group, topic)}/{id_}"


def parse_partition(path: str) -> BrokerPartition:
    """The partition whose offset is at `path`.

    Raises:
        NodeMalformed: its last name is that of no partition.
    """
    name = path.rpartition("/")[2]
    found = _PARTITION.fullmatch(name)
    if found is None:
        raise malformed(path, f"{shown(name)} is no partition")
    broker = found["broker"]
    return BrokerPartition(
        None if broker is None else number(path, broker, least=0, most=_LARGEST_ID),
        number(path, found["partition"], least=0, most=_LARGEST_ID),
    )


def parse_offset(path: str, data: bytes) -> int | None:
    """The next offset to read that is kept at `path`; None where it says that there is none.

    Raises:
        NodeMalformed: the value is no offset.
    """
    text = text_of(path, data, longest=_LONGEST_VALUE)
    if not _OFFSET.fullmatch(text) or int(text) > _LARGEST_OFFSET:
        raise malformed(path, f"{shown(text)} is no offset")
    return None if int(text) == _NO_OFFSET else int(text)


def format_offset(offset: int) -> bytes:
    """The value that keeps an offset."""
    return str(offset).encode()
