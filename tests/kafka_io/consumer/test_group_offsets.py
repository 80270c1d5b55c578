"""Offsets of groups come back as they were committed, in every generation."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_io.brokers.coordinators import CoordinatorConnection
from kafka_io.cluster.modern_cluster import ModernCluster
from kafka_io.cluster.opening import open_cluster
from kafka_io.consumer.coordinator_offsets import CoordinatorOffsets
from kafka_io.consumer.group_offsets import OffsetStorage, group_offsets
from kafka_io.consumer.membership import GroupMembership
from kafka_io.errors import BrokerError, Unsupported
from kafka_io.messages.find_coordinator import FindCoordinatorRequest
from kafka_io.messages.offset_commit import OffsetCommitRequest
from kafka_io.messages.offset_fetch import OffsetFetchRequest
from kafka_io.model import BrokerPartition, Generation
from kafka_io.registry.zookeeper import Registry
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from kafka_io.wire.conversation import ApiVersionRanges
from tests.kafka_io.testing.modern.talk import Client

P0, P1, P2 = (BrokerPartition(None, number) for number in range(3))
UNKNOWN_MEMBER = 25


@contextmanager
def modern(home: Path, *, zookeeper: str | None = None) -> Iterator[ModernBrokerServer]:
    config = ModernBrokerConfig(broker_id=1, data_dir=home / "broker", partitions=3)
    with ModernBrokerServer(config, zookeeper=zookeeper) as server:
        with Client(server.port) as client:
            assert client.create("clicks", 3) == 0
        yield server


def found(server: ModernBrokerServer) -> ModernCluster:
    cluster = open_cluster("main", bootstrap=f"127.0.0.1:{server.port}")
    assert isinstance(cluster, ModernCluster)
    return cluster


def test_offsets_of_a_group_come_back(tmp_path: Path) -> None:
    with modern(tmp_path) as server, found(server) as cluster:
        offsets = group_offsets(cluster)
        assert offsets.fetch("lake", ["clicks"]) == {"clicks": {P0: None, P1: None, P2: None}}
        offsets.commit("lake", {"clicks": {P0: 7, P2: 2**40}})
        offsets.commit("lake", {"clicks": {P0: 5}})
        assert offsets.fetch("lake", ["clicks", "views"]) == {"clicks": {P0: 5, P1: None, P2: 2**40}, "views": {}}
        assert offsets.fetch("lake") == {"clicks": {P0: 5, P2: 2**40}}
        assert offsets.fetch("others") == {}


@pytest.mark.parametrize("version", range(1, 10))
def test_every_version_of_the_requests_says_the_same(version: int, tmp_path: Path) -> None:
    with modern(tmp_path) as server, found(server) as cluster:
        brokers = cluster.metadata()
        offsets = CoordinatorOffsets(brokers)
        offsets.commit("lake", {"clicks": {P1: 1}})
        link = CoordinatorConnection(brokers, "lake").connection()
        spoken = {kind.API.key: (version, version) for kind in (OffsetCommitRequest, OffsetFetchRequest)}
        finding = min(version, FindCoordinatorRequest.API.versions[1])
        link._versions = ApiVersionRanges({**spoken, FindCoordinatorRequest.API.key: (finding, finding), 3: (9, 9)})
        offsets.commit("lake", {"clicks": {P0: 40 + version}})
        assert offsets.fetch("lake", ["clicks"]) == {"clicks": {P0: 40 + version, P1: 1, P2: None}}


def test_brokers_before_0_10_must_be_asked_for_topics_by_name(tmp_path: Path) -> None:
    with modern(tmp_path) as server, found(server) as cluster:
        offsets = CoordinatorOffsets(cluster.metadata())
        link = CoordinatorConnection(cluster.metadata(), "lake").connection()
        link._versions = ApiVersionRanges({8: (0, 1), 9: (0, 1), 10: (0, 0), 3: (0, 0)})
        with pytest.raises(Unsupported, match="only for named topics"):
            offsets.fetch("lake")
        link._versions = ApiVersionRanges({8: (0, 0), 9: (0, 0), 10: (0, 0), 3: (0, 0)})
        with pytest.raises(Unsupported, match=r"brokers before 0\.8\.2 store no offsets"):
            offsets.commit("lake", {"clicks": {P0: 1}})


def test_who_is_no_member_of_a_group_says_so_and_is_refused(tmp_path: Path) -> None:
    with modern(tmp_path) as server, found(server) as cluster:
        stranger = GroupMembership(generation=3, id="somebody")
        with pytest.raises(BrokerError, match=r"not have this member.*topic=clicks partition=1") as refused:
            group_offsets(cluster).commit("lake", {"clicks": {P1: 1}}, member=stranger)
        assert refused.value.code == UNKNOWN_MEMBER


@pytest.mark.zookeeper
def test_zookeeper_keeps_them_where_that_is_asked_for_or_the_brokers_are_old(chroot: str, tmp_path: Path) -> None:
    with modern(tmp_path, zookeeper=chroot), open_cluster("main", zookeeper=chroot) as cluster:
        group_offsets(cluster, OffsetStorage.ZOOKEEPER).commit("lake", {"clicks": {P0: 7}})
        assert group_offsets(cluster).fetch("lake") == {}
        with Registry.open(chroot) as registry:
            assert registry.group_offsets("lake") == {"clicks": {P0: 7}}
        with open_cluster("main", zookeeper=chroot, generation=Generation.V08) as old:
            assert group_offsets(old).fetch("lake") == {"clicks": {P0: 7}}


@pytest.mark.zookeeper
def test_a_cluster_of_0_7_has_no_coordinator(chroot: str) -> None:
    with open_cluster("main", zookeeper=chroot, generation=Generation.V07) as cluster:
        group_offsets(cluster).commit("lake", {"clicks": {BrokerPartition(0, 1): 57}})
        assert group_offsets(cluster).fetch("lake", ["clicks"]) == {"clicks": {BrokerPartition(0, 1): 57}}
        with pytest.raises(Unsupported, match=r"nor consumer groups \[cluster=main\]"):
            group_offsets(cluster, OffsetStorage.COORDINATOR)


def test_a_cluster_without_zookeeper_keeps_none_there(tmp_path: Path) -> None:
    with modern(tmp_path) as server, found(server) as cluster, pytest.raises(Unsupported, match="without a ZooKeeper"):
        group_offsets(cluster, OffsetStorage.ZOOKEEPER)
