"""Offsets of groups come back as they were committed, in every generation."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_io.brokers.coordinators import CoordinatorConnection
from kafka_io.brokers.modern_connection import ModernBrokerConnection
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
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from kafka_io.wire.conversation import ApiVersionRanges
from kafka_io.zookeeper.zookeeper import ZooKeeper
from tests.kafka_io.testing.modern.talk import Client

P0, P1, P2 = (BrokerPartition(None, number) for number in range(3))
UNKNOWN_MEMBER = 25


@contextmanager
def broker(home: Path, *, zookeeper: str | None = None) -> Iterator[ModernBrokerServer]:
    config = ModernBrokerConfig(broker_id=1, data_dir=home / "broker", partitions=3)
    with ModernBrokerServer(config, zookeeper=zookeeper) as server:
        with Client(server.port) as client:
            assert client.create("clicks", 3) == 0
        yield server


def opened(server: ModernBrokerServer) -> ModernCluster:
    cluster = open_cluster("main", bootstrap=f"127.0.0.1:{server.port}")
    assert isinstance(cluster, ModernCluster)
    return cluster


def test_offsets_of_a_group_come_back(tmp_path: Path) -> None:
    with broker(tmp_path) as server, opened(server) as cluster:
        offsets = group_offsets(cluster)
        assert offsets.fetch("lake", ["clicks"]) == {"clicks": {P0: None, P1: None, P2: None}}
        offsets.commit("lake", {"clicks": {P0: 7, P2: 2**40}})
        offsets.commit("lake", {"clicks": {P0: 5}})
        assert offsets.fetch("lake", ["clicks", "views"]) == {"clicks": {P0: 5, P1: None, P2: 2**40}, "views": {}}
        assert offsets.fetch("lake") == {"clicks": {P0: 5, P2: 2**40}}
        assert offsets.fetch("others") == {}


def with_versions(connection: ModernBrokerConnection, versions: Mapping[int, tuple[int, int]]) -> None:
    """Let the client believe that the broker supports these versions, on the open connection."""
    assert connection.versions
    assert connection._negotiated is not None
    connection._negotiated = replace(connection._negotiated, versions=ApiVersionRanges(versions))


@pytest.mark.parametrize("version", range(1, 10))
def test_every_version_of_the_requests_returns_the_same_offsets(version: int, tmp_path: Path) -> None:
    with broker(tmp_path) as server, opened(server) as cluster:
        metadata = cluster.metadata()
        offsets = CoordinatorOffsets(metadata)
        offsets.commit("lake", {"clicks": {P1: 1}})
        connection = CoordinatorConnection(metadata, "lake").connection()
        versions = {kind.API.key: (version, version) for kind in (OffsetCommitRequest, OffsetFetchRequest)}
        find_version = min(version, FindCoordinatorRequest.API.versions[1])
        with_versions(connection, {**versions, FindCoordinatorRequest.API.key: (find_version, find_version), 3: (9, 9)})
        offsets.commit("lake", {"clicks": {P0: 40 + version}})
        assert offsets.fetch("lake", ["clicks"]) == {"clicks": {P0: 40 + version, P1: 1, P2: None}}


def test_brokers_before_0_10_need_the_names_of_the_topics(tmp_path: Path) -> None:
    with broker(tmp_path) as server, opened(server) as cluster:
        offsets = CoordinatorOffsets(cluster.metadata())
        connection = CoordinatorConnection(cluster.metadata(), "lake").connection()
        with_versions(connection, {8: (0, 1), 9: (0, 1), 10: (0, 0), 3: (0, 0)})
        with pytest.raises(Unsupported, match="only for named topics"):
            offsets.fetch("lake")
        with_versions(connection, {8: (0, 0), 9: (0, 0), 10: (0, 0), 3: (0, 0)})
        with pytest.raises(Unsupported, match=r"brokers before 0\.8\.2 store no offsets"):
            offsets.commit("lake", {"clicks": {P0: 1}})


def test_the_commit_of_a_member_that_is_not_in_the_group_is_refused(tmp_path: Path) -> None:
    with broker(tmp_path) as server, opened(server) as cluster:
        not_a_member = GroupMembership(generation=3, id="somebody")
        with pytest.raises(BrokerError, match=r"not have this member.*topic=clicks partition=1") as raised:
            group_offsets(cluster).commit("lake", {"clicks": {P1: 1}}, member=not_a_member)
        assert raised.value.code == UNKNOWN_MEMBER


@pytest.mark.zookeeper
def test_offsets_are_in_zookeeper_by_choice_or_for_old_brokers(chroot: str, tmp_path: Path) -> None:
    with broker(tmp_path, zookeeper=chroot), open_cluster("main", zookeeper=chroot) as cluster:
        group_offsets(cluster, OffsetStorage.ZOOKEEPER).commit("lake", {"clicks": {P0: 7}})
        assert group_offsets(cluster).fetch("lake") == {}
        with ZooKeeper.open(chroot) as zookeeper:
            assert zookeeper.group_offsets("lake") == {"clicks": {P0: 7}}
        with open_cluster("main", zookeeper=chroot, generation=Generation.V08) as old:
            assert group_offsets(old).fetch("lake") == {"clicks": {P0: 7}}


@pytest.mark.zookeeper
def test_coordinator_offsets_of_0_7_are_unsupported(chroot: str) -> None:
    with open_cluster("main", zookeeper=chroot, generation=Generation.V07) as cluster:
        group_offsets(cluster).commit("lake", {"clicks": {BrokerPartition(0, 1): 57}})
        assert group_offsets(cluster).fetch("lake", ["clicks"]) == {"clicks": {BrokerPartition(0, 1): 57}}
        with pytest.raises(Unsupported, match=r"nor consumer groups \[cluster=main\]"):
            group_offsets(cluster, OffsetStorage.COORDINATOR)


def test_zookeeper_offsets_need_a_zookeeper(tmp_path: Path) -> None:
    with broker(tmp_path) as server, opened(server) as cluster, pytest.raises(Unsupported, match="without a ZooKeeper"):
        group_offsets(cluster, OffsetStorage.ZOOKEEPER)
