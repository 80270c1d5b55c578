"""What a broker of 0.8 or later writes of itself and its topics, for a cluster that has one broker.

A genuine cluster's controller writes the topics; their nodes outlive the brokers. The values are told in modern.py.
"""

import json
from dataclasses import dataclass
from typing import Any

from kafka_io.errors import RegistryError
from kafka_io.model import Broker
from kafka_io.registry.paths import CLUSTER_ID, partitions_path, state_path, topic_path
from kafka_io.registry.registration import make_parents
from kafka_io.registry.session import ZooKeeperQueries

_PLAIN_VERSION, _ENDPOINTS_VERSION = 1, 4
_NO_IDS_VERSION, _IDS_VERSION = 1, 3
_FIRST_EPOCH, _FIRST_CONTROLLER = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTopic:
    """A topic, the number of its partitions, who leads all of them, and its id, None before 2.8."""

    name: str
    partitions: int
    leader: int
    topic_id: str | None


def format_broker(broker: Broker, *, started_ms: int, endpoints: bool) -> bytes:
    """The value at a broker's node: as 0.8 writes it, or with endpoints as 0.10.2 and later do."""
    value: dict[str, Any] = {
        "version": _ENDPOINTS_VERSION if endpoints else _PLAIN_VERSION,
        "host": broker.host,
        "port": broker.port,
        "jmx_port": -1,
        "timestamp": str(started_ms),
    }
    if endpoints:
        value["endpoints"] = [f"PLAINTEXT://{broker.address}"]
        value["listener_security_protocol_map"] = {"PLAINTEXT": "PLAINTEXT"}
    return _json(value)


def publish_cluster_id(queries: ZooKeeperQueries, cluster_id: str) -> None:
    """Write the cluster's id, as brokers do from 0.10.1 on; one that is there stays."""
    _put(queries, CLUSTER_ID, _json({"version": "1", "id": cluster_id}))


def publish_topic(queries: ZooKeeperQueries, topic: PublishedTopic) -> None:
    """Write the topic and who leads it, in the order a controller does: the states come last (fault Z07).

    Nodes of another life of the topic, which a broker left that had other data, go first.
    """
    path, value = topic_path(topic.name), _topic_value(topic)
    [(_, there)] = queries.contents([path])
    if there is not None and there.value != value:
        withdraw_topic(queries, topic.name)
    _put(queries, path, value)
    for partition in range(topic.partitions):
        _put(queries, state_path(topic.name, str(partition)), _state_value(topic.leader))


def withdraw_topic(queries: ZooKeeperQueries, name: str) -> None:
    """Delete the topic's nodes, those below first."""
    parts = partitions_path(name)
    node = queries.node(parts)
    for child in node.children if node else ():
        queries.delete(state_path(name, child))
        queries.delete(f"{parts}/{child}")
    queries.delete(parts)
    queries.delete(topic_path(name))


def _topic_value(topic: PublishedTopic) -> bytes:
    value: dict[str, Any] = {
        "version": _NO_IDS_VERSION if topic.topic_id is None else _IDS_VERSION,
        "partitions": {str(partition): [topic.leader] for partition in range(topic.partitions)},
    }
    if topic.topic_id is not None:
        value |= {"topic_id": topic.topic_id, "adding_replicas": {}, "removing_replicas": {}}
    return _json(value)


def _state_value(leader: int) -> bytes:
    return _json(
        {
            "version": 1,
            "leader": leader,
            "leader_epoch": _FIRST_EPOCH,
            "isr": [leader],
            "controller_epoch": _FIRST_CONTROLLER,
        }
    )


def _put(queries: ZooKeeperQueries, path: str, value: bytes) -> None:
    if queries.create(path, value) is None:
        make_parents(queries, path)
        if queries.create(path, value) is None:
            raise RegistryError(f"{path!r} cannot be made: somebody deletes the nodes above it")


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
