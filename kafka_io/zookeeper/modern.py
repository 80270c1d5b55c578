"""Values of the nodes that Kafka 0.8 to 3.x write, as pure text that knows nothing of ZooKeeper.

/brokers/ids/<broker>     {"version": 1, "host": "a", "port": 9092}                                   0.8
                          "endpoints": ["SSL://a:9093"]; host null and port -1 without PLAINTEXT      2, 0.9
                          "rack": "r1"                                                                3, 0.10
                          "listener_security_protocol_map": {"INTERNAL": "SASL_SSL"}                  4, 0.10.2
                          "features": {}                                                              5, 2.7
/brokers/topics/<topic>   {"version": 1, "partitions": {"0": [1, 2]}}, by partition its replicas      0.8
                          "adding_replicas", "removing_replicas"                                      2, 2.4
                          "topic_id"                                                                  3, 2.8
.../partitions/<p>/state  {"leader": 1, "leader_epoch": 0, "isr": [1], "controller_epoch": 1}         0.8
/config/topics/<topic>    {"version": 1, "config": {"retention.ms": "3600000"}}                       0.8.1
/cluster/id               {"version": "1", "id": "..."}                                               0.10.1

Other fields are ignored. Sources: [kafka-0.8: Registry], and the nodes that real brokers write (see the tests).
"""

import re
from typing import NamedTuple

from kafka_io.messages.listed_topics import is_topic_name
from kafka_io.model import MAX_PARTITIONS, Broker
from kafka_io.zookeeper.node_values import NodeObject, broker_id, host, malformed, number, port, shown

PLAINTEXT = "PLAINTEXT"

_MAX_VALUE_BYTES = 65_536
# 100,000 partitions of three replicas each: ZooKeeper accepts this only if its limit of 1 MB is raised.
_MAX_TOPIC_VALUE_BYTES = 2**22

# 16 bytes as URL-safe base64 without padding: the last of the 22 characters has only two bits.
_TOPIC_ID = re.compile(r"[a-zA-Z0-9_-]{21}[AQgw]")
_NO_ID = "A" * 22
_CLUSTER_ID = re.compile(r"[a-zA-Z0-9_-]{1,22}")


class Endpoint(NamedTuple):
    """One listener of a broker, and its address. Before 0.10.2 a listener is named after its protocol."""

    listener: str
    protocol: str
    broker: Broker


class TopicNode(NamedTuple):
    """The content of a topic's node: the partition numbers in order, and the topic id (from 2.8 on)."""

    partitions: tuple[int, ...]
    topic_id: str | None


def parse_endpoints(path: str, data: bytes) -> tuple[Endpoint, ...]:
    """The endpoints of the broker registered at `path`, in the order of its `advertised.listeners`.

    Raises:
        NodeMalformed: the path or the value cannot be a broker's.
    """
    id_ = broker_id(path)
    node = NodeObject.parse(path, data, max_bytes=_MAX_VALUE_BYTES)
    if node.integer("version", min_value=1) == 1:
        name, port_number = host(path, node.text("host")), node.integer("port", min_value=1, max_value=65_535)
        return (Endpoint(PLAINTEXT, PLAINTEXT, Broker(id_, name, port_number)),)
    texts = node.texts("endpoints")
    if not texts:
        raise malformed(path, "it has no endpoint")
    protocols = node.object("listener_security_protocol_map") if node.has("listener_security_protocol_map") else None
    return tuple(_endpoint(path, id_, text, protocols) for text in texts)


def parse_topic(path: str, data: bytes) -> TopicNode:
    """The topic at `path`, of at most MAX_PARTITIONS partitions.

    Raises:
        NodeMalformed: the path or the value cannot be a topic's.
    """
    if not is_topic_name(path.rpartition("/")[2]):  # fault Z11
        raise malformed(path, "Kafka 0.8 and later accept no such topic name")
    node = NodeObject.parse(path, data, max_bytes=_MAX_TOPIC_VALUE_BYTES)
    replicas = node.object("partitions").fields
    partitions = sorted(number(path, name, min_value=0, max_value=MAX_PARTITIONS - 1) for name in replicas)
    return TopicNode(partitions=tuple(partitions), topic_id=_topic_id(node))


def parse_settings(path: str, data: bytes) -> dict[str, str]:
    """The topic's settings at `path`.

    Raises:
        NodeMalformed: the value has no settings, or one that is not text.
    """
    settings = NodeObject.parse(path, data, max_bytes=_MAX_VALUE_BYTES).object("config")
    return {name: settings.text(name) for name in settings.fields}


def parse_cluster_id(path: str, data: bytes) -> str:
    """The cluster's id, up to 22 characters of URL-safe base64.

    Raises:
        NodeMalformed: the value has no valid id.
    """
    id_ = NodeObject.parse(path, data, max_bytes=_MAX_VALUE_BYTES).text("id")
    if not _CLUSTER_ID.fullmatch(id_):
        raise malformed(path, f"{shown(id_)} is not a cluster id")
    return id_


def _endpoint(path: str, id_: int, text: str, protocols: NodeObject | None) -> Endpoint:
    listener, mark, address = text.partition("://")
    name, colon, port_number = address.rpartition(":")
    if not (listener and listener.isprintable() and mark and colon):
        raise malformed(path, f"the endpoint {shown(text)} is not listener://host:port")
    protocol = protocols.text(listener) if protocols else listener
    return Endpoint(listener, protocol, Broker(id_, host(path, name), port(path, port_number)))


def _topic_id(node: NodeObject) -> str | None:
    if not node.has("topic_id") or node.text("topic_id") == _NO_ID:
        return None
    id_ = node.text("topic_id")
    if not _TOPIC_ID.fullmatch(id_):
        raise malformed(node.path, f"{shown(id_)} is not a topic id")
    return id_
