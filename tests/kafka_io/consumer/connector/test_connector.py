"""Connectors on running brokers of 0.7 and a real ZooKeeper: a single one, and several in a group."""

import time
from itertools import islice
from os import SEEK_END
from typing import Any

import pytest
from kazoo.client import KazooClient

from kafka_io.consumer.connector.connector import ConsumerConnector
from kafka_io.errors import Corrupt, NodeMalformed, RegistryError
from tests.kafka_io.consumer.connector.conftest import Connect
from tests.kafka_io.consumer.connector.readers import PATIENCE_S, below, offsets, owners, reading, until
from tests.live import LiveCluster, numbered

pytestmark = pytest.mark.zookeeper


def test_one_consumer_reads_each_message_and_writes_the_nodes_of_a_genuine_one(
    cluster: LiveCluster, connect: Connect, nodes: KazooClient
) -> None:
    messages = numbered(100)
    cluster.publish("clicks", messages)
    connector = connect()
    [first, second] = connector.create_message_streams({"clicks": 2})["clicks"]
    assert nodes.get(f"/consumers/readers/ids/{connector.consumer_id}")[0] == b'{ "clicks": 2 }'
    member = connector.consumer_id
    assert owners(nodes) == {"0-0": f"{member}-0", "0-1": f"{member}-0", "1-0": f"{member}-1", "1-1": f"{member}-1"}
    with reading([first, second], connector) as readers:
        until(lambda: sum(len(reader.messages) for reader in readers) == len(messages))
        assert {message.partition.broker for message in readers[0].messages} == {0}
    assert sorted(value for reader in readers for value in reader.values if value) == sorted(messages)
    with cluster.open() as client:
        topic = client.topic("clicks")
        assert topic
        ends = {str(id_): bounds.latest for id_, bounds in _bounds(client, topic.partitions).items()}
    assert offsets(nodes) == ends
    assert owners(nodes) == {}
    assert below(nodes, "/consumers/readers/ids") == {}


def _bounds(client: Any, partitions: Any) -> Any:
    return client.bounds("clicks", partitions)


def test_a_new_member_continues_at_the_offsets_of_the_group(cluster: LiveCluster, connect: Connect) -> None:
    messages = numbered(60)
    cluster.publish("clicks", messages)
    seen: list[bytes | None] = []
    for _ in range(3):
        connector = connect(consumer_timeout_ms=PATIENCE_S * 1000)
        [stream] = connector.create_message_streams({"clicks": 1})["clicks"]
        seen.extend(message.value for message in islice(stream, 20))
        connector.shutdown()
    assert len(seen) == len(messages)
    assert set(seen) >= set(seen[:20])


def test_a_commit_inside_a_compressed_message_keeps_its_start(
    cluster: LiveCluster, connect: Connect, nodes: KazooClient
) -> None:
    messages = numbered(20)
    cluster.publish("clicks", messages, codecs=["gzip"], batch=20)
    for _ in range(2):  # messages that were compressed together are delivered again together
        connector = connect(auto_commit_interval_ms=None)
        [stream] = connector.create_message_streams({"clicks": 1})["clicks"]
        taken = list(islice(stream, 19))
        assert [message.value for message in taken] == messages[:19]
        assert {message.next_offset for message in taken} == {0}
        connector.commit_offsets()
        assert set(offsets(nodes).values()) == {0}
        connector.shutdown()
    connector = connect()
    [stream] = connector.create_message_streams({"clicks": 1})["clicks"]
    assert [message.value for message in islice(stream, 20)] == messages
    connector.commit_offsets()
    assert max(offsets(nodes).values()) > 0


def test_the_last_message_is_committed_when_the_next_one_is_requested(
    cluster: LiveCluster, connect: Connect, nodes: KazooClient
) -> None:
    cluster.publish("clicks", numbered(4), codecs=["none"], batch=4)
    connector = connect(auto_commit_interval_ms=100)
    [stream] = connector.create_message_streams({"clicks": 1})["clicks"]
    messages = iter(stream)
    first = next(messages)
    second = next(messages)
    until(lambda: offsets(nodes).get(str(first.partition)) == first.next_offset)
    connector.commit_offsets()
    assert offsets(nodes)[str(first.partition)] == second.next_offset


def test_an_automatic_commit_does_not_take_back_an_explicit_one(
    cluster: LiveCluster, connect: Connect, nodes: KazooClient
) -> None:
    cluster.publish("clicks", numbered(4), codecs=["none"], batch=4)
    connector = connect(auto_commit_interval_ms=100)
    [stream] = connector.create_message_streams({"clicks": 1})["clicks"]
    message = next(stream)
    connector.commit_offsets()
    time.sleep(1)  # several automatic commits
    assert offsets(nodes)[str(message.partition)] == message.next_offset


def test_partitions_move_to_a_member_that_joins_and_back_when_it_leaves(
    cluster: LiveCluster, connect: Connect, nodes: KazooClient
) -> None:
    messages = numbered(300)
    cluster.publish("clicks", messages[:100])
    connector_a = connect(consumer_id="a")
    with reading(connector_a.create_message_streams({"clicks": 1})["clicks"], connector_a) as [first]:
        until(lambda: len(set(first.values)) == 100)
        connector_b = connect(consumer_id="b")
        with reading(connector_b.create_message_streams({"clicks": 1})["clicks"], connector_b) as [second]:
            shared = {"0-0": "readers_a-0", "0-1": "readers_a-0", "1-0": "readers_b-0", "1-1": "readers_b-0"}
            until(lambda: owners(nodes) == shared)
            cluster.publish("clicks", messages[100:200])
            until(lambda: len({*first.values, *second.values}) == 200)
            assert {message.partition.broker for message in second.messages} == {1}
        until(lambda: set(owners(nodes).values()) == {"readers_a-0"} and len(owners(nodes)) == 4)
        cluster.publish("clicks", messages[200:])
        until(lambda: len({*first.values, *second.values}) == 300)
    assert {*first.values, *second.values} == set(messages)


def test_surplus_streams_own_no_partition(cluster: LiveCluster, connect: Connect, nodes: KazooClient) -> None:
    cluster.publish("clicks", numbered(10))
    connector = connect()
    streams = connector.create_message_streams({"clicks": 6})["clicks"]
    assert len(streams) == 6
    assert sorted(owners(nodes).values()) == [f"{connector.consumer_id}-{number}" for number in range(4)]


# fault Z02
def test_a_filter_includes_topics_that_are_created_later(
    cluster: LiveCluster, connect: Connect, nodes: KazooClient
) -> None:
    cluster.publish("clicks", numbered(10))
    connector = connect()
    streams = connector.create_message_streams_by_filter(whitelist="cl.*|vi.*")
    assert nodes.get(f"/consumers/readers/ids/{connector.consumer_id}")[0] == b"*1*cl.*|vi.*"
    with reading(streams, connector) as [reader]:
        until(lambda: len(reader.messages) == 10)
        cluster.publish("views", numbered(10, 10))
        cluster.publish("other", numbered(10, 20))
        until(lambda: set(reader.values) == set(numbered(20)))
        assert {message.topic for message in reader.messages} == {"clicks", "views"}
    assert owners(nodes, "other") == {}


def test_a_topic_may_be_created_after_its_consumer(cluster: LiveCluster, connect: Connect) -> None:
    connector = connect()
    with reading(connector.create_message_streams({"late": 1})["late"], connector) as [reader]:
        cluster.publish("late", numbered(20))
        until(lambda: set(reader.values) == set(numbered(20)))


# fault Z01
def test_an_expired_session_is_replaced_by_a_new_one(
    cluster: LiveCluster, connect: Connect, nodes: KazooClient
) -> None:
    messages = numbered(200)
    cluster.publish("clicks", messages[:100])
    connector = connect()
    with reading(connector.create_message_streams({"clicks": 1})["clicks"], connector) as [reader]:
        until(lambda: len(reader.messages) == 100)
        client = connector._registration._session._client
        session_id = client.client_id[0]
        _end_session(client)
        until(lambda: client.client_id and client.client_id[0] != session_id and len(owners(nodes)) == 4)
        assert nodes.exists(f"/consumers/readers/ids/{connector.consumer_id}")
        cluster.publish("clicks", messages[100:])
        until(lambda: set(reader.values) == set(messages))
    assert len(offsets(nodes)) == 4


def _end_session(client: KazooClient) -> None:
    """End the session of a client, as ZooKeeper does if the client is silent for too long."""
    hosts = ",".join(f"{host}:{port}" for host, port in client.hosts)
    twin = KazooClient(hosts=hosts, client_id=client.client_id)
    twin.start()
    twin.stop()
    twin.close()


def test_the_partitions_of_a_lost_session_move_to_another_member(
    cluster: LiveCluster, connect: Connect, nodes: KazooClient
) -> None:
    """The member that lost its session commits nothing when it shuts down."""
    messages = numbered(100)
    cluster.publish("clicks", messages)
    silent = connect(auto_commit_interval_ms=None, consumer_id="a", session_timeout_ms=2000)
    [stream] = silent.create_message_streams({"clicks": 1})["clicks"]
    assert next(stream)
    other = connect(consumer_id="b")
    _end_session(silent._registration._session._client)
    with reading(other.create_message_streams({"clicks": 1})["clicks"], other) as [reader]:
        until(lambda: len(owners(nodes)) == 4)
        silent.shutdown()
        until(lambda: set(reader.values) == set(messages))


def test_a_restarted_broker_is_read_again(cluster: LiveCluster, connect: Connect) -> None:
    messages = numbered(200)
    cluster.publish("clicks", messages[:100])
    connector = connect()
    with reading(connector.create_message_streams({"clicks": 1})["clicks"], connector) as [reader]:
        until(lambda: len(set(reader.values)) == 100)
        cluster.brokers[1].stop()
        with cluster.open() as client:
            until(lambda: len(client.zookeeper.brokers().entries) == 1)
        cluster.publish("clicks", messages[100:150], codecs=("none",), batch=500)
        until(lambda: len(set(reader.values)) == 150)
        cluster.brokers[1].start()
        cluster.publish("clicks", messages[150:])
        until(lambda: set(reader.values) == set(messages))


@pytest.mark.parametrize(("reset", "expected"), [("smallest", 100), ("largest", 50)])
def test_an_offset_out_of_range_is_reset_as_the_setting_says(
    cluster: LiveCluster, connect: Connect, nodes: KazooClient, reset: str, expected: int
) -> None:
    messages = numbered(100)
    cluster.publish("clicks", messages[:50])
    for id_ in ("0-0", "0-1", "1-0", "1-1"):
        nodes.create(f"/consumers/readers/offsets/clicks/{id_}", b"987654321", makepath=True)
    connector = connect(auto_offset_reset=reset)
    with reading(connector.create_message_streams({"clicks": 1})["clicks"], connector) as [reader]:
        until(lambda: 987654321 not in offsets(nodes).values())
        cluster.publish("clicks", messages[50:])
        until(lambda: len(reader.messages) >= expected)
        assert set(reader.values) == set(messages[-expected:])


def test_minus_1_means_that_there_is_no_offset(cluster: LiveCluster, connect: Connect, nodes: KazooClient) -> None:
    cluster.publish("clicks", numbered(20))
    for id_ in ("0-0", "0-1", "1-0", "1-1"):
        nodes.create(f"/consumers/readers/offsets/clicks/{id_}", b"-1", makepath=True)
    connector = connect()
    with reading(connector.create_message_streams({"clicks": 1})["clicks"], connector) as [reader]:
        until(lambda: set(reader.values) == set(numbered(20)))


def test_partitions_that_another_member_keeps_are_an_error(
    cluster: LiveCluster, connect: Connect, nodes: KazooClient
) -> None:
    cluster.publish("clicks", numbered(5))
    nodes.create("/consumers/readers/owners/clicks/0-1", b"somebody-0", makepath=True)
    connector = connect(rebalance_max_retries=2)
    with pytest.raises(RegistryError, match=r"other members still own .* after 2 attempts"):
        connector.create_message_streams({"clicks": 1})
    connector.shutdown()
    assert owners(nodes) == {"0-1": "somebody-0"}


def test_messages_larger_than_a_fetch_are_read(cluster: LiveCluster, connect: Connect) -> None:
    messages = [bytes([65 + number]) * 5000 for number in range(8)]
    cluster.publish("clicks", messages, codecs=["none"], batch=2)
    connector = connect(fetch_bytes=100)
    with reading(connector.create_message_streams({"clicks": 1})["clicks"], connector) as [reader]:
        until(lambda: set(reader.values) == set(messages))


# fault R02
def test_a_message_above_max_fetch_bytes_is_an_error_and_not_the_end_of_the_stream(
    cluster: LiveCluster, connect: Connect
) -> None:
    cluster.publish("clicks", [b"x" * 5000], codecs=["none"])
    connector = connect(fetch_bytes=100, max_fetch_bytes=1000)
    [stream] = connector.create_message_streams({"clicks": 1})["clicks"]
    for _ in range(2):
        with pytest.raises(Exception, match="of 5010 bytes is above max_fetch_bytes = 1000"):
            next(stream)


def test_a_full_queue_blocks_the_fetcher_but_not_the_shutdown(cluster: LiveCluster, connect: Connect) -> None:
    cluster.publish("clicks", numbered(400))
    connector = connect(fetch_bytes=200, queued_max_chunks=1)
    [stream] = connector.create_message_streams({"clicks": 1})["clicks"]
    assert next(stream)
    connector.shutdown()
    assert list(stream) == []
    connector.shutdown()


def test_a_stream_ends_after_its_timeout_and_can_be_continued(cluster: LiveCluster, connect: Connect) -> None:
    cluster.publish("clicks", numbered(5))
    connector = connect(consumer_timeout_ms=500)
    [stream] = connector.create_message_streams({"clicks": 1})["clicks"]
    seen: set[bytes | None] = set()

    def read_on() -> int:
        seen.update(message.value for message in stream)
        return len(seen)

    until(lambda: read_on() == 5)
    cluster.publish("clicks", numbered(5, 5))
    until(lambda: read_on() == 10)


def test_streams_are_created_once(cluster: LiveCluster, connect: Connect) -> None:
    cluster.publish("clicks", numbered(1))
    connector = connect()
    with pytest.raises(RuntimeError, match="no streams"):
        connector.commit_offsets()
    connector.create_message_streams({"clicks": 1})
    with pytest.raises(RuntimeError, match="once"):
        connector.create_message_streams({"views": 1})


def test_invalid_arguments_of_a_connector_are_refused(chroot: str, connect: Connect) -> None:
    with pytest.raises(NodeMalformed):
        ConsumerConnector.open(chroot, "a/b")
    with pytest.raises(ValueError, match="smallest or largest"):
        ConsumerConnector.open(chroot, "a", auto_offset_reset="earliest")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ConsumerConnector.open(chroot, "a", no_such_setting=1)  # type: ignore[call-arg]
    connector = connect()
    with pytest.raises(ValueError, match="a whitelist or a blacklist"):
        connector.create_message_streams_by_filter()
    with pytest.raises(ValueError, match="streams must be 1 to"):
        connector.create_message_streams({"clicks": 0})
    with pytest.raises(RegistryError):  # there is no Kafka
        connector.create_message_streams({"clicks": 1})


def test_messages_before_a_corrupt_one_are_read_and_each_next_raises_its_error(
    cluster: LiveCluster, connect: Connect
) -> None:
    messages = numbered(8)
    cluster.publish("clicks", messages, codecs=["none"], batch=8)
    [log] = [file for file in cluster.home.glob("broker-*/clicks-*/*.kafka") if file.stat().st_size]
    with log.open("r+b") as file:
        file.seek(-1, SEEK_END)
        file.write(b"?")
    connector = connect()
    [stream] = connector.create_message_streams({"clicks": 1})["clicks"]
    assert [next(stream).value for _ in range(7)] == messages[:7]
    for _ in range(2):
        with pytest.raises(Corrupt, match="CRC"):
            next(stream)
    connector.shutdown()


def test_the_partitions_of_a_deleted_topic_are_released(
    cluster: LiveCluster, connect: Connect, nodes: KazooClient
) -> None:
    cluster.publish("clicks", numbered(20))
    cluster.publish("views", numbered(20, 20))
    connector = connect()
    with reading(connector.create_message_streams_by_filter(blacklist="other"), connector) as [reader]:
        until(lambda: len(reader.messages) == 40)
        nodes.delete("/brokers/topics/views", recursive=True)
        until(lambda: owners(nodes, "views") == {})
        cluster.publish("clicks", numbered(20, 40))
        until(lambda: len(reader.messages) == 60)
    assert len(offsets(nodes, "views")) == 4


def test_the_offset_of_a_reset_is_committed_even_without_auto_commit(
    cluster: LiveCluster, connect: Connect, nodes: KazooClient
) -> None:
    cluster.publish("clicks", numbered(20))
    connector = connect(auto_commit_interval_ms=None, auto_offset_reset="smallest")
    with reading(connector.create_message_streams({"clicks": 1})["clicks"], connector) as [reader]:
        until(lambda: len(reader.messages) == 20 and len(offsets(nodes)) == 4)
    assert set(offsets(nodes).values()) == {0}
