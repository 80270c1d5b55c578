"""Connectors on clusters of 0.8 and of later versions that keep their topics in ZooKeeper."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kafka_io.model import Generation
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.server import ModernBrokerServer
from tests.kafka_io.consumer.connector.conftest import Connect
from tests.kafka_io.consumer.connector.readers import offsets, owners, reading, until
from tests.live import numbered
from tests.publishing import publish as publish_values_to

pytestmark = pytest.mark.zookeeper

Start = Callable[[], ModernBrokerServer]


@pytest.fixture(params=[Generation.V08, Generation.MODERN])
def start(request: pytest.FixtureRequest, chroot: str, tmp_path: Path) -> Iterator[Start]:
    """Starts the broker; each start uses another port and the same data."""
    with ExitStack() as running:

        def start_() -> ModernBrokerServer:
            config = ModernBrokerConfig(broker_id=1, data_dir=tmp_path / "data", generation=request.param, partitions=5)
            return running.enter_context(ModernBrokerServer(config, zookeeper=chroot))

        yield start_


def publish(chroot: str, messages: list[bytes], topic: str = "clicks") -> None:
    """Spread the messages over the topic's partitions."""
    publish_values_to(topic, messages, zookeeper=chroot, batch_size=7)


def test_members_share_a_topic_and_commit_record_numbers(
    start: Start, chroot: str, connect: Connect, nodes: KazooClient
) -> None:
    start()
    messages = numbered(100)
    publish(chroot, messages)
    connector_a, connector_b = connect(consumer_id="a"), connect(consumer_id="b")
    with reading(connector_a.create_message_streams({"clicks": 1})["clicks"], connector_a) as [first]:
        registered = json.loads(nodes.get("/consumers/readers/ids/readers_a")[0])
        assert registered.pop("timestamp").isdecimal()
        assert registered == {"version": 1, "subscription": {"clicks": 1}, "pattern": "static"}
        with reading(connector_b.create_message_streams_by_filter(whitelist="cl.*"), connector_b) as [second]:
            assert owners(nodes) == {**dict.fromkeys("012", "readers_a-0"), **dict.fromkeys("34", "readers_b-0")}
            until(lambda: {*first.values, *second.values} == set(messages))
    assert sum(offsets(nodes).values()) == len(messages)
    assert owners(nodes) == {}


def test_a_broker_that_restarts_at_another_port_is_found(start: Start, chroot: str, connect: Connect) -> None:
    messages = numbered(100)
    broker = start()
    publish(chroot, messages[:50])
    connector = connect()
    with reading(connector.create_message_streams({"clicks": 1})["clicks"], connector) as [reader]:
        until(lambda: len(reader.messages) == 50)
        broker.stop()
        start()
        publish(chroot, messages[50:])
        until(lambda: set(reader.values) == set(messages))
