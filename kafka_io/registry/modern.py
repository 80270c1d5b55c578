"""What Kafka 0.8 to 3.x keep in their registry, as pure text. Nothing here knows ZooKeeper.

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

Fields that nobody needs are let by. Sources: [kafka-0.8: Registry], and the nodes that real brokers write (see the
tests).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kafka_io.registry.endpoints import Endpoint, RegisteredBroker, plaintext_endpoint
from kafka_io.registry.json_text import JsonObject
from kafka_io.registry.paths import MAX_PARTITIONS
from kafka_io.registry.text import broker_id, host, malformed, number, port, shown

_MAX_VALUE_BYTES = 65_536
# 100,000 partitions of three replicas each: more than ZooKeeper takes unless its limit of 1 MB is raised.
_MAX_TOPIC_VALUE_BYTES = 2**22

# What brokers of 0.8 and 0.9 take; 0.10.2 and later take 249 characters, and keep the longer ones that are there.
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,255}")
# 16 bytes as URL-safe base64 without padding: the last of the 22 characters holds two bits.
_TOPIC_ID = re.compile(r"[a-zA-Z0-9_-]{21}[AQgw]")
_NO_ID = "A" * 22
_CLUSTER_ID = re.compile(r"[a-zA-Z0-9_-]{1,22}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicNode:
    """What a topic's node says: its partitions' numbers in order, and its id where there is one (2.8)."""

    partitions: tuple[int, ...]
    topic_id: str | None


def parse_broker(path: str, data: bytes) -> RegisteredBroker:
    """The broker registered at `path`.

    Raises:
        NodeMalformed: the path or the value cannot be a broker's.
    """
    id_ = broker_id(path)
    node = JsonObject.parse(path, data, max_bytes=_MAX_VALUE_BYTES)
    version = node.integer("version", min_value=1)
    return RegisteredBroker(
        id=id_,
        endpoints=tuple(_endpoints(node)) if version > 1 else (_only_endpoint(node),),
        version=version,
        rack=node.text("rack") if node.has("rack") else None,
    )


def parse_topic(path: str, data: bytes) -> TopicNode:
    """The topic at `path`; at most MAX_PARTITIONS partitions.

    Raises:
        NodeMalformed: the path or the value cannot be a topic's.
    """
    if not _TOPIC_NAME.fullmatch(path.rpartition("/")[2]):  # fault Z11; the path is not "." or "..": ZooKeeper has none
        raise malformed(path, "Kafka 0.8 and later take no such topic name")
    node = JsonObject.parse(path, data, max_bytes=_MAX_TOPIC_VALUE_BYTES)
    replicas = node.object("partitions").fields
    partitions = sorted(number(path, name, min_value=0, max_value=MAX_PARTITIONS - 1) for name in replicas)
    return TopicNode(partitions=tuple(partitions), topic_id=_topic_id(node))


def parse_settings(path: str, data: bytes) -> dict[str, str]:
    """The topic's settings that are at `path`.

    Raises:
        NodeMalformed: the value holds none, or one that is no text.
    """
    settings = JsonObject.parse(path, data, max_bytes=_MAX_VALUE_BYTES).object("config")
    return {name: settings.text(name) for name in settings.fields}


def parse_cluster_id(path: str, data: bytes) -> str:
    """The cluster's id, up to 22 characters of URL-safe base64.

    Raises:
        NodeMalformed: the value has none.
    """
    id_ = JsonObject.parse(path, data, max_bytes=_MAX_VALUE_BYTES).text("id")
    if not _CLUSTER_ID.fullmatch(id_):
        raise malformed(path, f"{shown(id_)} is not a cluster id")
    return id_


def _only_endpoint(node: JsonObject) -> Endpoint:
    return plaintext_endpoint(host(node.path, node.text("host")), node.integer("port", min_value=1, max_value=65_535))


def _endpoints(node: JsonObject) -> Iterator[Endpoint]:
    texts = node.texts("endpoints")
    if not texts:
        raise malformed(node.path, "it has no endpoint")
    protocols = node.object("listener_security_protocol_map") if node.has("listener_security_protocol_map") else None
    for text in texts:
        listener, mark, address = text.partition("://")
        name, colon, number_ = address.rpartition(":")
        if not (listener and listener.isprintable() and mark and colon):
            raise malformed(node.path, f"the endpoint {shown(text)} is not listener://host:port")
        yield Endpoint(
            listener=listener,
            protocol=protocols.text(listener) if protocols else listener,
            host=host(node.path, name),
            port=port(node.path, number_),
        )


def _topic_id(node: JsonObject) -> str | None:
    if not node.has("topic_id") or node.text("topic_id") == _NO_ID:
        return None
    id_ = node.text("topic_id")
    if not _TOPIC_ID.fullmatch(id_):
        raise malformed(node.path, f"{shown(id_)} is not a topic id")
    return id_
