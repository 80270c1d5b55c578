"""A connector shares a group with the console consumer of Kafka 0.8.2.2, while members join, leave and are killed."""

import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka_io.consumer.connector.connector import ConsumerConnector
from tests.brokers import jvm
from tests.brokers.real import RealBroker
from tests.kafka_io.consumer.connector.readers import below, reading, until
from tests.nodes import connected

pytestmark = pytest.mark.brokers

VERSION = "0.8.2.2"
PARTITIONS = 5
SETTINGS: dict[str, Any] = {"rebalance_max_retries": 30, "auto_commit_interval_ms": 500, "fetch_backoff_ms": 100}


class Console:
    """Kafka's console consumer in a group, and the values that it has printed."""

    def __init__(self, zookeeper: str, topic: str, config: str) -> None:
        self.values: list[bytes] = []
        self._process = subprocess.Popen(
            jvm.command(
                VERSION,
                "kafka.tools.ConsoleConsumer",
                *("--zookeeper", zookeeper, "--topic", topic, "--consumer.config", config),
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stdout
        self.values.extend(line.strip() for line in self._process.stdout)

    def leave(self) -> None:
        """Stop the consumer: it commits, and releases its partitions."""
        self._process.terminate()
        self._end()

    def kill(self) -> None:
        """Kill the consumer. A second call does nothing."""
        self._process.kill()
        self._end()

    def _end(self) -> None:
        self._process.wait(60)
        self._reading.join(60)
        assert self._process.stdout
        self._process.stdout.close()


@pytest.fixture
def zookeeper(zookeeper_server: str) -> str:
    """The ZooKeeper chroot of this test's cluster."""
    return f"{zookeeper_server}/connector-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def broker(zookeeper: str, tmp_path: Path) -> Iterator[RealBroker]:
    """A broker that only this test uses, because the test stops and starts it."""
    with RealBroker(VERSION, tmp_path / "broker", zookeeper=zookeeper) as running:
        yield running


@pytest.fixture
def console(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., AbstractContextManager[Console]]:
    """Runs Kafka's console consumer for the length of a `with` block."""

    @contextmanager
    def run(zookeeper: str, group: str, topic: str) -> Iterator[Console]:
        config = tmp_path_factory.mktemp("console") / "consumer.properties"
        lines = (f"group.id={group}", "auto.offset.reset=smallest", "auto.commit.interval.ms=500")
        config.write_text("\n".join((*lines, "rebalance.max.retries=30", "rebalance.backoff.ms=1000")))
        running = Console(zookeeper, topic, str(config))
        try:
            yield running
        finally:
            running.kill()

    return run


def test_kafkas_consumer_and_ours_share_a_group_and_miss_no_message(
    broker: RealBroker, zookeeper: str, console: Callable[..., AbstractContextManager[Console]], topic: str
) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, PARTITIONS)
    published: list[bytes] = []

    def publish() -> None:
        for partition in range(PARTITIONS):
            payloads = [b"%d-%d" % (partition, len(published) + number) for number in range(20)]
            broker.produce(topic, [(None, value) for value in payloads], partition=partition)
            published.extend(payloads)

    with connected(zookeeper) as nodes:

        def owners() -> dict[str, str]:
            return below(nodes, f"/consumers/{group}/owners/{topic}")

        def shares() -> list[int]:
            owned = list(owners().values())
            return sorted(owned.count(owner) for owner in set(owned))

        connector = ConsumerConnector.open(zookeeper, group, **SETTINGS)
        with reading(connector.create_message_streams({topic: 1})[topic], connector) as [reader]:
            publish()
            until(lambda: set(reader.values) == set(published))
            with console(zookeeper, group, topic) as second:  # a second member joins
                until(lambda: shares() == [2, 3])
                publish()
                until(lambda: {*reader.values, *second.values} == set(published))
                broker.stop()
                broker.start()
                publish()
                until(lambda: {*reader.values, *second.values} == set(published))
                until(lambda: shares() == [2, 3])
                second.leave()
                assert len(second.values) >= 40
            until(lambda: shares() == [5])
            publish()
            until(lambda: {*reader.values, *second.values} == set(published))
            with console(zookeeper, group, topic) as killed:
                until(lambda: shares() == [2, 3])
                publish()
                killed.kill()  # its session must end before our member gets all partitions
                until(lambda: shares() == [5])
                until(lambda: {*reader.values, *second.values, *killed.values} == set(published))
            with console(zookeeper, group, topic) as last:
                until(lambda: shares() == [2, 3])
                connector.shutdown()
                until(lambda: shares() == [5])
                publish()
                consoles = (second, killed, last)
                until(
                    lambda: (
                        {*reader.values, *(value for consumer in consoles for value in consumer.values)}
                        == set(published)
                    )
                )
