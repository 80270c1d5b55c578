"""A member is killed, or ZooKeeper stops: the remaining members read everything."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kafka_io.consumer.connector.connector import ConsumerConnector
from resources.machines.zookeeper_server import ZooKeeperServer
from tests.kafka_io.consumer.connector.conftest import SHORT_INTERVALS, Connect
from tests.kafka_io.consumer.connector.readers import offsets, owners, reading, until
from tests.kafka_io.testing.v07.talk import Client, message
from tests.live import LiveCluster, live_cluster, numbered
from tests.nodes import connected

pytestmark = pytest.mark.zookeeper

MEMBER = """
import sys
from kafka_io import ConsumerConnector
connector = ConsumerConnector.open(sys.argv[1], "readers", consumer_id="a", session_timeout_ms=4000)
[stream] = connector.create_message_streams({"clicks": 1})["clicks"]
for message in stream:
    print(message.value.decode(), flush=True)
"""


def test_the_partitions_of_a_killed_member_move_to_the_others(
    cluster: LiveCluster, connect: Connect, nodes: KazooClient
) -> None:
    messages = numbered(200)
    cluster.publish("clicks", messages[:100])
    killed = subprocess.Popen([sys.executable, "-c", MEMBER, cluster.zookeeper], stdout=subprocess.PIPE)
    try:
        assert killed.stdout
        seen = {killed.stdout.readline().strip() for _ in range(100)}
        connector = connect(consumer_id="b")
        with reading(connector.create_message_streams({"clicks": 1})["clicks"], connector) as [reader]:
            assert set(owners(nodes).values()) == {"readers_a-0", "readers_b-0"}
            killed.kill()
            until(lambda: set(owners(nodes).values()) == {"readers_b-0"} and len(owners(nodes)) == 4)
            cluster.publish("clicks", messages[100:])
            until(lambda: seen | set(reader.values) == set(messages))
            assert set(messages[100:]) <= set(reader.values)
    finally:
        killed.kill()
        killed.wait()
        assert killed.stdout
        killed.stdout.close()


def test_owned_partitions_are_read_without_zookeeper_and_committed_afterwards(tmp_path: Path) -> None:
    messages = numbered(90)
    with ExitStack() as running:
        server = ZooKeeperServer(None, tmp_path / "zookeeper")
        running.enter_context(server)
        live = running.enter_context(live_cluster(server.connect, tmp_path / "live"))
        live.publish("clicks", messages[:30])
        client = running.enter_context(Client(live.brokers[0].port))
        connector = ConsumerConnector.open(
            server.connect, "readers", **{**SHORT_INTERVALS, "zookeeper_timeout_ms": 10_000}
        )
        with reading(connector.create_message_streams({"clicks": 1})["clicks"], connector) as [reader]:
            until(lambda: len(reader.messages) == 30)
            port = server.port
            server.close()
            client.produce("clicks", *map(message, messages[30:60]))
            until(lambda: len(set(reader.values)) == 60)
            back = running.enter_context(ZooKeeperServer(port, tmp_path / "zookeeper"))
            with connected(back.connect) as nodes:
                client.produce("clicks", *map(message, messages[60:]))
                until(lambda: set(reader.values) == set(messages))
                # The nodes of owners can be those of the old session. Offsets prove that the new one is live.
                ends: dict[str, int] = {}
                for read in tuple(reader.messages):
                    ends[str(read.partition)] = max(read.next_offset, ends.get(str(read.partition), 0))
                until(lambda: ends.items() <= offsets(nodes).items() and len(owners(nodes)) == 4)
