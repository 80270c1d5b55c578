"""A 0.7 broker registers itself and its topics in a real ZooKeeper, and tries again when ZooKeeper does not answer."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_io.errors import RegistryError, RegistryUnavailable
from kafka_io.model import Broker, BrokerPartition
from kafka_io.testing.topic_registrar import TopicRegistrar
from kafka_io.testing.v07.server import BrokerServer07
from kafka_io.zookeeper.zookeeper import ZooKeeper
from tests.kafka_io.testing.v07.conftest import StartBroker
from tests.kafka_io.testing.v07.talk import TIMEOUT_S, Client, numbered

Connect = Callable[[BrokerServer07], Client]


@pytest.fixture
def zookeeper(chroot: str) -> Iterator[ZooKeeper]:
    with ZooKeeper.open(chroot) as opened:
        yield opened


def partitions(zookeeper: ZooKeeper) -> dict[str, tuple[BrokerPartition, ...]]:
    return {topic.name: topic.partitions for topic in zookeeper.topics().entries}


def share(count: int, *, broker: int = 0) -> tuple[BrokerPartition, ...]:
    return tuple(BrokerPartition(broker, partition) for partition in range(count))


@pytest.mark.zookeeper
def test_a_broker_is_registered_while_it_runs(start_broker: StartBroker, chroot: str, zookeeper: ZooKeeper) -> None:
    broker = start_broker(zookeeper=chroot, broker_id=3)
    assert list(zookeeper.brokers().entries) == [Broker(3, "127.0.0.1", broker.port)]
    broker.stop()
    assert list(zookeeper.brokers().entries) == []


@pytest.mark.zookeeper
def test_a_topic_is_registered_at_its_first_produce_with_the_configured_count(
    start_broker: StartBroker, connect: Connect, chroot: str, zookeeper: ZooKeeper
) -> None:
    client = connect(start_broker(zookeeper=chroot))
    for topic in ("three", "clicks", "clicks"):
        client.produce(topic, *numbered(1), partition=1)
    expected = {"clicks": share(2), "three": share(3)}
    deadline = time.monotonic() + TIMEOUT_S
    registered: dict[str, tuple[BrokerPartition, ...]] = {}
    while registered != expected:
        assert time.monotonic() < deadline
        with contextlib.suppress(RegistryError):  # the parent node does not exist before the first topic
            registered = partitions(zookeeper)


@pytest.mark.zookeeper
def test_a_topic_stays_registered_without_its_broker_and_gets_its_partitions_back(
    start_broker: StartBroker, chroot: str, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    for name in ("three-2", "my-topic-1"):
        (tmp_path / "data" / name).mkdir(parents=True)
    broker = start_broker(zookeeper=chroot)
    assert partitions(zookeeper) == {"my-topic": share(2), "three": share(3)}  # as soon as it has started
    broker.stop()
    assert partitions(zookeeper) == {"my-topic": (), "three": ()}
    start_broker(zookeeper=chroot)
    assert partitions(zookeeper) == {"my-topic": share(2), "three": share(3)}


@pytest.mark.zookeeper
def test_brokers_can_register_different_numbers_of_partitions_for_a_topic(
    start_broker: StartBroker, chroot: str, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    for broker_id, count in ((0, 2), (1, 1)):
        data_dir = tmp_path / str(broker_id)
        (data_dir / "clicks-0").mkdir(parents=True)
        start_broker(zookeeper=chroot, broker_id=broker_id, partitions=count, data_dir=data_dir)
    assert partitions(zookeeper) == {"clicks": (*share(2), *share(1, broker=1))}


@pytest.mark.zookeeper
def test_a_start_without_the_chroot_fails_and_leaves_no_thread_and_no_lock(
    start_broker: StartBroker, chroot: str, tmp_path: Path
) -> None:
    """The broker does not create the chroot; a genuine broker does not start either [kafka-0.7: Broker registry]."""
    threads = set(threading.enumerate())
    with pytest.raises(RegistryError, match="chroot"):
        start_broker(zookeeper=f"{chroot}/missing", data_dir=tmp_path)
    assert set(threading.enumerate()) <= threads
    start_broker(data_dir=tmp_path)


def test_a_topic_is_registered_when_zookeeper_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that ZooKeeper refuses does not stop the topics after it."""
    monkeypatch.setattr("kafka_io.testing.topic_registrar._PAUSE_S", 0.01)
    topics: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    failures: list[RegistryError] = [RegistryUnavailable("away"), RegistryUnavailable("away")]
    attempts: list[str] = []
    is_registered = threading.Event()

    def register(topic: str) -> None:
        attempts.append(topic)
        if topic == "refused":
            raise RegistryError("no")
        if failures:
            raise failures.pop()
        is_registered.set()

    registrar = TopicRegistrar(4, topics, register)
    registrar.start()
    topics.put("refused")
    topics.put("clicks")
    assert is_registered.wait(TIMEOUT_S)
    registrar.stop()
    assert attempts == ["refused", "clicks", "clicks", "clicks"]
