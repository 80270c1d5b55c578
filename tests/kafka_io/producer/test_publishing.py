"""Published values arrive once each, in the format of the broker's version of Produce."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.errors import BrokerError, LeaderMoved, NodeMalformed, Unsupported
from kafka_io.messages.metadata import MetadataRequest
from kafka_io.messages.produce import (
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
)
from kafka_io.producer.dispatch import Dispatcher
from kafka_io.producer.producer import Producer
from kafka_io.producer.publishing import publish_values
from kafka_io.producer.senders import SyncSender
from kafka_io.producer.settings import ProducerSettings
from kafka_io.producer.transport_modern import ModernTransport
from kafka_io.records.decoder import decode
from kafka_io.records.record_set import RequestedOffsets
from kafka_io.wire.conversation import ReceivedRequest
from kafka_io.wire.types import NULL_UUID
from tests.fakes.cluster import EVERYTHING, NOT_LEADER, FakeBroker, FakeCluster, Log
from tests.kafka_io.conftest import ATTEMPTS, OpenBrokers

METADATA, PRODUCE = MetadataRequest.API.key, ProduceRequest.API.key
NEWEST = ProduceRequest.API.versions[1]
TOO_LARGE = 10
PAYLOADS = [b"value %d" % number for number in range(10)]
TOPIC_ID = UUID(int=7)
StoredBatches = list[tuple[int, int, list[bytes]]]
OpenCluster = Callable[..., tuple[FakeCluster, StoredBatches]]


@pytest.fixture
def storing_cluster() -> Any:
    """Opens a cluster that stores partitions 0 and 1, with the list of its batches: broker, partition, values."""
    with ExitStack() as running:

        def open_(version: int = NEWEST, topic_id: UUID = TOPIC_ID) -> tuple[FakeCluster, StoredBatches]:
            offered = {**EVERYTHING, PRODUCE: (version, version)}
            logs = {0: Log(entries=[], end=0), 1: Log(entries=[], end=0, leader=1)}
            cluster = running.enter_context(FakeCluster(logs=logs, offered=offered, topic_id=topic_id))
            stored: StoredBatches = []
            for number, broker in enumerate(cluster.brokers):
                broker.handlers[PRODUCE] = partial(store, cluster, number, stored)
            return cluster, stored

        yield open_


def store(cluster: FakeCluster, broker: int, stored: StoredBatches, received: ReceivedRequest) -> ProduceResponse:
    """Store a batch and answer as the leader of its partition does; other brokers answer with an error."""
    request: Any = received.request
    [topic] = request.topic_data
    [partition] = topic.partition_data
    assert (request.acks, request.transactional_id) == (-1, None)
    assert (topic.topic_id == cluster.topic_id) if received.version >= 13 else (topic.name == cluster.topic)
    leads = cluster.logs[partition.index].leader == broker
    if leads:
        values = [
            row
            for decoded in decode(partition.records, RequestedOffsets(start=0))
            for row in decoded.batch["value"].to_pylist()
        ]
        stored.append((broker, partition.index, values))
    return answered(received, partition.index, 0 if leads else NOT_LEADER)


def answered(received: ReceivedRequest, partition: int, code: int) -> ProduceResponse:
    request: Any = received.request
    [topic] = request.topic_data
    answer = ProducePartitionResponse(index=partition, error_code=code, base_offset=0)
    named: dict[str, Any] = {"topic_id": topic.topic_id} if received.version >= 13 else {"name": topic.name}
    return ProduceResponse(responses=(ProduceTopicResponse(partition_responses=(answer,), **named),))


def publish(brokers: ClusterMetadata, topic: str, values: list[bytes], *, codec: str = "none", **options: Any) -> int:
    """Publish through a producer that does not number its batches."""
    settings = ProducerSettings(compression=codec, idempotent=False)
    transport = ModernTransport(brokers, settings)
    dispatcher = Dispatcher(transport, settings)
    producer = Producer(SyncSender(dispatcher.send, transport.close), dispatcher, settings)
    return publish_values((producer,), topic, values, **options)


def versions_of(broker: FakeBroker) -> set[int]:
    return {received.version for received in broker.heard if received.api.key == PRODUCE}


@pytest.mark.parametrize("version", range(NEWEST + 1))
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_batches_go_to_the_leaders_in_turn_in_every_version(
    version: int, codec: str, storing_cluster: OpenCluster, open_brokers: OpenBrokers
) -> None:
    cluster, stored = storing_cluster(version)
    sent_counts: list[int] = []
    assert (
        publish(open_brokers(cluster), "clicks", PAYLOADS, codec=codec, batch_size=4, on_sent=sent_counts.append) == 10
    )
    assert stored == [(0, 0, PAYLOADS[:4]), (1, 1, PAYLOADS[4:8]), (0, 0, PAYLOADS[8:])]
    assert sent_counts == [4, 4, 2]
    assert versions_of(cluster.brokers[0]) == {version}


def test_without_a_topic_id_a_request_names_the_topic(storing_cluster: OpenCluster, open_brokers: OpenBrokers) -> None:
    cluster, stored = storing_cluster(topic_id=NULL_UUID)
    cluster.offered = {**cluster.offered, PRODUCE: (0, NEWEST)}
    publish(open_brokers(cluster), "clicks", PAYLOADS)
    assert (versions_of(cluster.brokers[0]), len(stored)) == ({12}, 1)


# fault B01
def test_a_leader_that_moved_is_followed(storing_cluster: OpenCluster, open_brokers: OpenBrokers) -> None:
    cluster, stored = storing_cluster()
    brokers = open_brokers(cluster)
    publish(brokers, "clicks", PAYLOADS[:1])
    cluster.logs[0].leader = 1
    publish(brokers, "clicks", PAYLOADS[1:])
    assert stored == [(0, 0, PAYLOADS[:1]), (1, 0, PAYLOADS[1:])]


@pytest.mark.parametrize(("version", "known"), [(2, False), (6, False), (7, True)])
def test_zstd_is_refused_for_brokers_before_2_1(
    version: int, known: bool, storing_cluster: OpenCluster, open_brokers: OpenBrokers
) -> None:
    cluster, stored = storing_cluster(version)
    if known:
        publish(open_brokers(cluster), "clicks", PAYLOADS, codec="zstd")
        assert stored == [(0, 0, PAYLOADS)]
    else:
        with pytest.raises(Unsupported, match="zstd"):
            publish(open_brokers(cluster), "clicks", PAYLOADS, codec="zstd")
        assert not stored


def test_an_error_code_of_the_broker_is_raised(storing_cluster: OpenCluster, open_brokers: OpenBrokers) -> None:
    cluster, _ = storing_cluster()
    cluster.brokers[0].handlers[PRODUCE] = lambda received: answered(received, 0, TOO_LARGE)
    with pytest.raises(BrokerError) as raised:
        publish(open_brokers(cluster), "clicks", PAYLOADS)
    assert raised.value.code == TOO_LARGE


def test_a_missing_topic_is_requested_and_is_an_error_if_it_is_not_created(
    storing_cluster: OpenCluster, open_brokers: OpenBrokers
) -> None:
    cluster, _ = storing_cluster()
    with pytest.raises(LeaderMoved, match="have not created it"):
        publish(open_brokers(cluster), "other", PAYLOADS)
    requests: list[Any] = [received.request for received in cluster.heard(METADATA)]
    assert sum(request.allow_auto_topic_creation for request in requests) == ATTEMPTS


def test_publishing_nothing_requests_no_topic(storing_cluster: OpenCluster, open_brokers: OpenBrokers) -> None:
    cluster, _ = storing_cluster()
    assert publish(open_brokers(cluster), "other", []) == 0
    assert cluster.heard(METADATA) == []


def test_an_invalid_topic_name_is_refused_before_any_request(
    storing_cluster: OpenCluster, open_brokers: OpenBrokers
) -> None:
    cluster, _ = storing_cluster()
    with pytest.raises(NodeMalformed):
        publish(open_brokers(cluster), "a/b", PAYLOADS)
    assert cluster.heard(METADATA) == []
