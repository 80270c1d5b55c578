"""The nodes of a broker are created once, after those of a killed broker are gone, and again in a new session."""

import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

from kafka_io.errors import RegistryError, RegistryUnavailable
from kafka_io.model import Broker, BrokerPartition
from kafka_io.zookeeper.zookeeper import Registry

pytestmark = pytest.mark.zookeeper

BROKER = Broker(4, "127.0.0.1", 9092)
CREATOR = "127.0.0.1-1795257118723"


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_broker_registers_as_a_genuine_one_does(nodes: Any, chroot: str) -> None:
    with Registry.open(chroot) as registry:
        registry.register_broker(BROKER, CREATOR)
        registry.register_topic("a b:c", BROKER.id, 2)
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
        Registry.open(f"{zookeeper_server}/no-such-chroot") as registry,
        pytest.raises(RegistryError, match=r"chroot .* does not exist"),
    ):
        registry.register_broker(BROKER, CREATOR)
    with Registry.open(zookeeper_server) as root:
        assert not root._session.in_one_session(lambda queries: queries.exists("/no-such-chroot"))


def test_registering_twice_has_the_effect_of_once(registry: Registry) -> None:
    registry.register_broker(BROKER, CREATOR)
    registry.register_broker(BROKER, CREATOR)
    assert registry.brokers().entries == (BROKER,)


def test_waits_for_the_node_of_a_killed_broker(kafka: Any, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka.create("/brokers/ids/4", b"old-1:old:1", ephemeral=True)
    waits = []

    def gone_after_three(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            kafka.delete("/brokers/ids/4")

    monkeypatch.setattr(registry._registration, "_sleep", gone_after_three)
    registry.register_broker(BROKER, CREATOR)
    assert len(waits) == 3
    assert registry.brokers().entries == (BROKER,)


def test_an_id_of_another_running_broker_is_an_error(
    kafka: Any, chroot: str, expire: Callable[[Registry], None]
) -> None:
    kafka.create("/brokers/ids/4", b"other-1:other:1", ephemeral=True)
    with Registry.open(chroot, session_timeout_s=1) as registry:
        registry._registration._takeover_s = 0
        with pytest.raises(RegistryError, match="'/brokers/ids/4' is already registered"):
            registry.register_broker(BROKER, CREATOR)
        kafka.delete("/brokers/ids/4")
        session = registry._session.id
        expire(registry)
        until(lambda: registry._session.id not in (session, None))
        assert registry.brokers().entries == ()  # a failed registration is not repeated later


# fault Z01
def test_a_new_session_registers_all_nodes_again(
    nodes: Any, registry: Registry, expire: Callable[[Registry], None]
) -> None:
    registry.register_broker(BROKER, CREATOR)
    registry.register_topic("clicks", BROKER.id, 2)
    session = nodes.exists("/brokers/ids/4").ephemeralOwner
    expire(registry)
    until(lambda: nodes.exists("/brokers/topics/clicks/4") is not None)
    assert nodes.exists("/brokers/ids/4").ephemeralOwner not in (0, session)
    topic = registry.topic("clicks")
    assert topic is not None
    assert topic.partitions == (BrokerPartition(4, 0), BrokerPartition(4, 1))


def test_a_registration_that_fails_to_be_repeated_is_kept(
    nodes: Any, registry: Registry, expire: Callable[[Registry], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_answer(_path: str, _value: bytes) -> None:
        raise RegistryUnavailable("no answer")

    registry.register_broker(BROKER, CREATOR)
    session = nodes.exists("/brokers/ids/4").ephemeralOwner
    with monkeypatch.context() as patch:
        patch.setattr(registry._registration, "_wait_until_held", no_answer)
        with pytest.raises(RegistryUnavailable):
            registry.register_broker(BROKER, CREATOR)
    expire(registry)
    until(lambda: getattr(nodes.exists("/brokers/ids/4"), "ephemeralOwner", session) != session)
    assert registry.brokers().entries == (BROKER,)


def test_a_registration_that_another_session_takes_over_is_logged(
    kafka: Any,
    registry: Registry,
    expire: Callable[[Registry], None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry.register_broker(BROKER, CREATOR)
    hold = registry._registration._hold

    def taken_first(path: str, value: bytes) -> bool:
        kafka.create(path, b"other-1:other:1", ephemeral=True)
        return hold(path, value)

    monkeypatch.setattr(registry._registration, "_hold", taken_first)
    with caplog.at_level(logging.ERROR, logger="kafka_io"):
        expire(registry)
        until(lambda: any("another session has registered it" in record.getMessage() for record in caplog.records))
    assert registry.brokers().entries == (Broker(4, "other", 1),)
