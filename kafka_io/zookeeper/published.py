"""What an embedded broker of 0.8 or later writes about itself and its topics, in a cluster of one broker.

In a genuine cluster the controller writes the topics. Their nodes remain when the brokers stop. See modern.py for the
values.
"""

from typing import Any

from kafka_io.errors import RegistryError
from kafka_io.model import Broker
from kafka_io.zookeeper.node_values import compact_json
from kafka_io.zookeeper.paths import CLUSTER_ID, check_topic_name, partitions_path, state_path, topic_path
from kafka_io.zookeeper.registration import create_with_parents
from kafka_io.zookeeper.session import ZooKeeperQueries

_PLAIN_VERSION, _ENDPOINTS_VERSION = 1, 4
_NO_IDS_VERSION, _IDS_VERSION = 1, 3


def format_broker(broker: Broker, *, started_ms: int, endpoints: bool) -> bytes:
    """The value of a broker's node: in the format of 0.8, or with endpoints as in 0.10.2 and later."""
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
    return compact_json(value)


def publish_cluster_id(queries: ZooKeeperQueries, cluster_id: str) -> None:
    """Write the cluster id, as brokers do from 0.10.1 on, unless there is one."""
    _create(queries, CLUSTER_ID, {"version": "1", "id": cluster_id})


def publish_topic(queries: ZooKeeperQueries, name: str, *, partitions: int, leader: int, topic_id: str | None) -> None:
    """Write the topic and the leader of each partition, in the order of a controller: the states are last (fault Z07).

    Nodes of another incarnation of the topic, which a broker with other data left, are deleted first. `topic_id` is
    None before 2.8.
    """
    value: dict[str, Any] = {
        "version": _NO_IDS_VERSION if topic_id is None else _IDS_VERSION,
        "partitions": {str(partition): [leader] for partition in range(partitions)},
    }
    if topic_id is not None:
        value |= {"topic_id": topic_id, "adding_replicas": {}, "removing_replicas": {}}
    check_topic_name(name)
    path = topic_path(name)
    [(_, content)] = queries.contents([path])
    if content is not None and content.value != compact_json(value):
        withdraw_topic(queries, name)
    _create(queries, path, value)
    state = {"version": 1, "leader": leader, "leader_epoch": 0, "isr": [leader], "controller_epoch": 1}
    for partition in range(partitions):
        _create(queries, state_path(name, str(partition)), state)


def withdraw_topic(queries: ZooKeeperQueries, name: str) -> None:
    """Delete the nodes of a topic, children first."""
    check_topic_name(name)
    parent = partitions_path(name)
    for child in queries.children(parent):
        queries.delete(state_path(name, child))
        queries.delete(f"{parent}/{child}")
    queries.delete(parent)
    queries.delete(topic_path(name))


def _create(queries: ZooKeeperQueries, path: str, value: dict[str, Any]) -> None:
    if create_with_parents(queries, path, compact_json(value)) is None:
        raise RegistryError(f"the node {path!r} cannot be created: another client deletes its parent nodes")
