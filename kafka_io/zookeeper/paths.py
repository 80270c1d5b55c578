"""Paths of the nodes of every generation, and the values of the nodes of 0.7, as pure text.

See [kafka-0.7: Broker registry].

/brokers/ids/<broker>             `<creator>:<host>:<port>`, where creator is `<host>-<ms>`
/brokers/topics/<topic>/<broker>  the number of partitions on that broker

See modern.py for the values that later brokers write.
"""

import re

from kafka_io.errors import NodeMalformed
from kafka_io.model import MAX_PARTITIONS, Broker, BrokerPartition
from kafka_io.zookeeper.node_values import broker_id, host, malformed, number, port, shown, text_of

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
TOPIC_SETTINGS = "/config/topics"
DELETED_TOPICS = "/admin/delete_topics"
CLUSTER_ID = "/cluster/id"
CONSUMERS = "/consumers"

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
"""Topics of the brokers themselves, from 0.8.2 and 0.11 on."""

_MAX_TOPIC_NAME = 255
_MAX_VALUE_BYTES = 1024

# A genuine broker splits the value at each colon into three parts, so it cannot name an IPv6 host. Here an IPv6 host is
# read if the creator is `<host>-<ms>`, which ends at the first `-<ms>:`, because no host contains a dash, digits and a
# colon in a row (`fe80::1-1324306324402:fe80::1:9092`). After any other creator there must be exactly two parts:
# `2001:db8::1:9092` is not a broker at `db8::1`. The port follows the last colon.
_CREATOR = re.compile(r".+?-[0-9]+:(?=.*:)|[^:]*:(?=[^:]*:[^:]*\Z)")
_ILLEGAL_IN_TOPIC = re.compile("[/\\x00-\\x1f\\x7f-\\x9f\\ud800-\\uf8ff\\ufff0-\\uffff]")


def broker_path(broker_id: int) -> str:
    """The node with a broker's address."""
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    """The node of a topic. It remains when the brokers stop."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """The child of a topic of 0.8 or later that the controller creates with the state of the first partition."""
    return f"{TOPICS}/{topic}/partitions"


def state_path(topic: str, partition: str) -> str:
    """The node with the leader of a partition, from 0.8 on."""
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def check_topic_name(name: str) -> None:
    """Check that a 0.7 broker and ZooKeeper accept the name [kafka-0.7: Topic names] (fault Z11).

    Raises:
        NodeMalformed: the name is illegal.
    """
    characters = len(name.encode("utf-16-le", "surrogatepass")) // 2  # as Java counts
    if not 0 < characters <= _MAX_TOPIC_NAME:
        raise NodeMalformed(f"a topic name of {characters} characters: 1 to {_MAX_TOPIC_NAME} are allowed")
    if name in {".", ".."} or _ILLEGAL_IN_TOPIC.search(name):
        raise NodeMalformed(f"the topic name {name!r} is a path or has characters that no topic may have")


def parse_broker_07(path: str, data: bytes) -> Broker:
    """The broker registered at `path`, from `creator:host:port` [kafka-0.7: Broker registry].

    An IPv6 host may have brackets, which are removed.

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
    """The value that a broker registers. `creator` is `<host>-<ms>`, different for each start of a broker."""
    return f"{creator}:{broker.address}".encode()


def parse_topic_share(path: str, data: bytes) -> tuple[BrokerPartition, ...]:
    """The partitions of a topic on one broker, from the number at `path`; at most MAX_PARTITIONS.

    Raises:
        NodeMalformed: the path does not end with a broker id, or the value is not a number of partitions.
    """
    id_ = broker_id(path)
    count = number(path, text_of(path, data, max_bytes=_MAX_VALUE_BYTES), min_value=0, max_value=MAX_PARTITIONS)
    return tuple(BrokerPartition(id_, partition) for partition in range(count))


def format_topic_share(partitions: int) -> bytes:
    """The value that a broker registers for a topic."""
    return str(partitions).encode()
