"""The nodes of a broker are created once, after those of a killed broker are gone, and again in a new session."""

import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from kafka_io.errors import RegistryError, RegistryUnavailable
from kafka_io.model import Broker, BrokerPartition
from kafka_io.zookeeper.zookeeper import ZooKeeper

pytestmark = pytest.mark.zookeeper

BROKER = Broker(4, "127.0.0.1", 9092)
CREATOR = "127.0.0.1-1795257118723"


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_broker_registers_as_a_genuine_one_does(nodes: Any, chroot: str) -> None:
    with ZooKeeper.open(chroot) as zookeeper:
        zookeeper.register_broker(BROKER, CREATOR)
        zookeeper.register_topic("a b:c", BROKER.id, 2)
        value, stat = nodes.get("/brokers/ids/4")
        assert value == b"127.0.0.1-1795257118723:127.0.0.1:9092"
        assert stat.ephemeralOwner
        value, stat = nodes.get("/brokers/topics/a b:c/4")
        assert value == b"2"
        assert stat.ephemeralOwner
        assert nodes.exists("/brokers/topics/a b:c").ephemeralOwner == 0
    assert nodes.get_children("/brokers/ids") == []
    assert nodes.get_children("/brokers/topics") == ["a b:c"]
    assert nodes.get_children("/brokers/topics/a b:c") == []


def test_a_missing_chroot_is_not_created(zookeeper_server: str) -> None:
    with (
        ZooKeeper.open(f"{zookeeper_server}/no-such-chroot") as zookeeper,
        pytest.raises(RegistryError, match=r"chroot .* does not exist"),
    ):
        zookeeper.register_broker(BROKER, CREATOR)
    with ZooKeeper.open(zookeeper_server) as root:
        assert not root._session.in_one_session(lambda queries: queries.exists("/no-such-chroot"))


def test_registering_twice_has_the_effect_of_once(zookeeper: ZooKeeper) -> None:
    zookeeper.register_broker(BROKER, CREATOR)
    zookeeper.register_broker(BROKER, CREATOR)
    assert zookeeper.brokers().entries == (BROKER,)


def test_waits_for_the_node_of_a_killed_broker(
    kafka: Any, zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.create("/brokers/ids/4", b"old-1:old:1", ephemeral=True)
    waits = []

    def gone_after_three(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            kafka.delete("/brokers/ids/4")

    monkeypatch.setattr(zookeeper._registration, "_sleep", gone_after_three)
    zookeeper.register_broker(BROKER, CREATOR)
    assert len(waits) == 3
    assert zookeeper.brokers().entries == (BROKER,)


def test_an_id_of_another_running_broker_is_an_error(
    kafka: Any, chroot: str, expire: Callable[[ZooKeeper], None]
) -> None:
    kafka.create("/brokers/ids/4", b"other-1:other:1", ephemeral=True)
    with ZooKeeper.open(chroot, session_timeout_s=1) as zookeeper:
        zookeeper._registration._takeover_s = 0
        with pytest.raises(RegistryError, match="'/brokers/ids/4' is already registered"):
            zookeeper.register_broker(BROKER, CREATOR)
        kafka.delete("/brokers/ids/4")
        session = zookeeper._session.id
        expire(zookeeper)
        until(lambda: zookeeper._session.id not in (session, None))
        assert zookeeper.brokers().entries == ()  # a failed registration is not repeated later


# fault Z01
def test_a_new_session_registers_all_nodes_again(
    nodes: Any, zookeeper: ZooKeeper, expire: Callable[[ZooKeeper], None]
) -> None:
    zookeeper.register_broker(BROKER, CREATOR)
    zookeeper.register_topic("clicks", BROKER.id, 2)
    session = nodes.exists("/brokers/ids/4").ephemeralOwner
    expire(zookeeper)
    until(lambda: nodes.exists("/brokers/topics/clicks/4") is not None)
    assert nodes.exists("/brokers/ids/4").ephemeralOwner not in (0, session)
    topic = zookeeper.topic("clicks")
    assert topic is not None
    assert topic.partitions == (BrokerPartition(4, 0), BrokerPartition(4, 1))


def test_a_registration_that_fails_to_be_repeated_is_kept(
    nodes: Any, zookeeper: ZooKeeper, expire: Callable[[ZooKeeper], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_answer(_path: str, _value: bytes) -> None:
        raise RegistryUnavailable("no answer")

    zookeeper.register_broker(BROKER, CREATOR)
    session = nodes.exists("/brokers/ids/4").ephemeralOwner
    with monkeypatch.context() as patch:
        patch.setattr(zookeeper._registration, "_wait_until_held", no_answer)
        with pytest.raises(RegistryUnavailable):
            zookeeper.register_broker(BROKER, CREATOR)
    expire(zookeeper)
    until(lambda: getattr(nodes.exists("/brokers/ids/4"), "ephemeralOwner", session) != session)
    assert zookeeper.brokers().entries == (BROKER,)


def test_a_registration_that_another_session_takes_over_is_logged(
    kafka: Any,
    zookeeper: ZooKeeper,
    expire: Callable[[ZooKeeper], None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    zookeeper.register_broker(BROKER, CREATOR)
    hold = zookeeper._registration._hold

    def taken_first(path: str, value: bytes) -> bool:
        kafka.create(path, b"other-1:other:1", ephemeral=True)
        return hold(path, value)

    monkeypatch.setattr(zookeeper._registration, "_hold", taken_first)
    with caplog.at_level(logging.ERROR, logger="kafka_io"):
        expire(zookeeper)
        until(lambda: any("another session has registered it" in record.getMessage() for record in caplog.records))
    assert zookeeper.brokers().entries == (Broker(4, "other", 1),)
