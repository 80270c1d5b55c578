"""The nodes in ZooKeeper show the generation of a cluster, and its id."""

from collections.abc import Callable
from typing import Any

import pytest

from kafka_io.errors import NodeMalformed, RegistryError
from kafka_io.zookeeper.zookeeper import ZooKeeper

pytestmark = pytest.mark.zookeeper


@pytest.mark.parametrize(
    ("release", "cluster_id"),
    [("0.8.2.2", None), ("0.9.0.1", None), ("0.10.2.2", "KfMaVi2eTPi-I92asIeakA"), ("2.8.2", "EMPKDx33RYOw0FsBOtEryg")],
)
def test_later_clusters_are_not_0_7_and_have_an_id_from_0_10_1_on(
    release: str, cluster_id: str | None, load_release: Callable[[str], object], nodes: Any, zookeeper: ZooKeeper
) -> None:
    load_release(release)
    assert zookeeper.is_v07() is False
    assert zookeeper.cluster_id() == cluster_id
    nodes.delete("/brokers/ids/1")  # no broker is running: the topic shows the generation
    assert zookeeper.is_v07() is False


def test_a_cluster_of_0_7_has_no_id(load_dump: Callable[[str], None], nodes: Any, zookeeper: ZooKeeper) -> None:
    load_dump("00-brokers-and-topics.json")
    assert zookeeper.is_v07() is True
    assert zookeeper.cluster_id() is None
    nodes.delete("/brokers/ids/0")
    assert zookeeper.is_v07() is True


def test_a_cluster_whose_nodes_show_no_generation_counts_as_0_7(kafka: Any, zookeeper: ZooKeeper) -> None:
    assert zookeeper.is_v07() is True
    kafka.create("/brokers/ids/0", b"\xff")
    kafka.create("/brokers/topics/clicks")
    assert zookeeper.is_v07() is True
    kafka.delete("/brokers/topics", recursive=True)
    assert zookeeper.is_v07() is True


def test_a_stopped_cluster_of_0_7_still_lists_its_topics(
    load_dump: Callable[[str], None], zookeeper: ZooKeeper
) -> None:
    load_dump("40-broker-stopped.json")
    assert zookeeper.is_v07() is True
    assert len(zookeeper.topics().entries) == 29


# fault Z06
def test_a_chroot_without_kafka_is_an_error(zookeeper: ZooKeeper) -> None:
    with pytest.raises(RegistryError, match=r"not a Kafka registry.*'/brokers/ids'"):
        zookeeper.is_v07()
    with pytest.raises(RegistryError, match=r"not a Kafka registry.*'/brokers/ids'"):
        zookeeper.cluster_id()


# fault Z04
def test_a_malformed_cluster_id_is_an_error(kafka: Any, zookeeper: ZooKeeper) -> None:
    kafka.create("/cluster/id", b'{"version":"1"}', makepath=True)
    with pytest.raises(NodeMalformed, match="/cluster/id"):
        zookeeper.cluster_id()
