"""Paths of every registry, and the values of that of 0.7, as pure text that knows no ZooKeeper.

See [kafka-0.7: Broker registry].

/brokers/ids/<broker>             `<creator>:<host>:<port>`, where creator is `<host>-<ms>`
/brokers/topics/<topic>/<broker>  the number of partitions on that broker

What later brokers keep at the first of these paths and below the second is told in modern.py.
"""

import re

from kafka_io.errors import NodeMalformed
from kafka_io.model import Broker, BrokerPartition
from kafka_io.registry.text import broker_id, host, malformed, number, port, shown, text_of

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
DELETED_TOPICS = "/admin/delete_topics"
CLUSTER_ID = "/cluster/id"

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
"""What brokers keep for themselves, from 0.8.2 and 0.11 on."""

MAX_PARTITIONS = 100_000
_MAX_TOPIC_NAME = 255
_MAX_VALUE_BYTES = 1024

# A genuine broker splits the value at each colon into three parts, so it can name no IPv6 host. One is read where the
# creator is `<host>-<ms>`: it ends at the first `-<ms>:`, as no host has a dash, digits and a colon in a row
# (`fe80::1-1324306324402:fe80::1:9092`). After any other creator there must be the two genuine parts, for
# `2001:db8::1:9092` is no broker at `db8::1`. The port is what follows the last colon.
_CREATOR = re.compile(r".+?-[0-9]+:(?=.*:)|[^:]*:(?=[^:]*:[^:]*\Z)")
_ILLEGAL_IN_TOPIC = re.compile("[/\\x00-\\x1f\\x7f-\\x9f\\ud800-\\uf8ff\\ufff0-\\uffff]")


def broker_path(broker_id: int) -> str:
    """Where a broker's address is registered."""
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    """The node that makes a topic exist; it outlives the brokers."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """The node below a topic of 0.8 or later that its controller makes with the first partition's state."""
    return f"{TOPICS}/{topic}/partitions"


def state_path(topic: str, partition: str) -> str:
    """Where the leader of a partition is registered, from 0.8 on."""
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def settings_path(topic: str) -> str:
    """Where the settings of a topic are that differ from the brokers' own, from 0.8.1 on."""
    return f"/config/topics/{topic}"


def share_path(topic: str, broker_id: int) -> str:
    """Where a broker's number of partitions of a topic is registered."""
    return f"{TOPICS}/{topic}/{broker_id}"


def check_topic_name(name: str) -> None:
    """`name` is one that a 0.7 broker and ZooKeeper take [kafka-0.7: Topic names] (fault Z11).

    Raises:
        NodeMalformed: it is not.
    """
    characters = len(name.encode("utf-16-le", "surrogatepass")) // 2  # as Java counts
    if not 0 < characters <= _MAX_TOPIC_NAME:
        raise NodeMalformed(f"a topic name of {characters} characters: 1 to {_MAX_TOPIC_NAME} are allowed")
    if name in {".", ".."} or _ILLEGAL_IN_TOPIC.search(name):
        raise NodeMalformed(f"the topic name {name!r} is a path or has characters that no topic may have")


def parse_broker_07(path: str, data: bytes) -> Broker:
    """The broker registered at `path`; an IPv6 host may stand with or without brackets, and is given without.

    The value must be `creator:host:port` [kafka-0.7: Broker registry].

    Raises:
        NodeMalformed: the path or the value cannot be a broker's.
    """
    id_ = broker_id(path)
    text = text_of(path, data, max_bytes=_MAX_VALUE_BYTES)
    creator = _CREATOR.match(text)
    if creator is None:
        raise malformed(path, f"{shown(text)} is not creator:host:port")
    name, _, port_number = text[creator.end() :].rpartition(":")
    return Broker(id_, host(path, name), port(path, port_number))


def format_broker_07(broker: Broker, creator: str) -> bytes:
    """The value a broker registers; `creator` is `<host>-<ms>`, unlike that of any broker before it."""
    return f"{creator}:{broker.address}".encode()


def parse_topic_share(path: str, data: bytes) -> tuple[BrokerPartition, ...]:
    """The broker-partitions that the node at `path` stands for, in order; at most MAX_PARTITIONS.

    Raises:
        NodeMalformed: the path or the value cannot be a share.
    """
    id_ = broker_id(path)
    count = number(path, text_of(path, data, max_bytes=_MAX_VALUE_BYTES), min_value=0, max_value=MAX_PARTITIONS)
    return tuple(BrokerPartition(id_, partition) for partition in range(count))


def format_topic_share(partitions: int) -> bytes:
    """The value a broker registers for a topic."""
    return str(partitions).encode()
