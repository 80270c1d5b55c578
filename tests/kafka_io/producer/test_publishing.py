"""What is published arrives once each, in the format that the broker's version of Produce carries."""

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
Taken = list[tuple[int, int, list[bytes]]]
OpenCluster = Callable[..., tuple[FakeCluster, Taken]]


@pytest.fixture
def taking() -> Any:
    """A cluster whose brokers take records in for partitions 0 and 1, and the batches they took: by whom, for which."""
    with ExitStack() as running:

        def open_(version: int = NEWEST, topic_id: UUID = TOPIC_ID) -> tuple[FakeCluster, Taken]:
            offered = {**EVERYTHING, PRODUCE: (version, version)}
            logs = {0: Log(entries=[], end=0), 1: Log(entries=[], end=0, leader=1)}
            cluster = running.enter_context(FakeCluster(logs=logs, offered=offered, topic_id=topic_id))
            taken: Taken = []
            for number, broker in enumerate(cluster.brokers):
                broker.handlers[PRODUCE] = partial(take, cluster, number, taken)
            return cluster, taken

        yield open_


def take(cluster: FakeCluster, broker: int, taken: Taken, one: ReceivedRequest) -> ProduceResponse:
    """As the leader of a partition does."""
    request: Any = one.request
    [topic] = request.topic_data
    [part] = topic.partition_data
    assert (request.acks, request.transactional_id) == (-1, None)
    assert (topic.topic_id == cluster.topic_id) if one.version >= 13 else (topic.name == cluster.topic)
    leads = cluster.logs[part.index].leader == broker
    if leads:
        values = [
            row
            for decoded in decode(part.records, RequestedOffsets(start=0))
            for row in decoded.batch["value"].to_pylist()
        ]
        taken.append((broker, part.index, values))
    return answered(one, part.index, 0 if leads else NOT_LEADER)


def answered(one: ReceivedRequest, partition: int, code: int) -> ProduceResponse:
    request: Any = one.request
    [topic] = request.topic_data
    part = ProducePartitionResponse(index=partition, error_code=code, base_offset=0)
    named: dict[str, Any] = {"topic_id": topic.topic_id} if one.version >= 13 else {"name": topic.name}
    return ProduceResponse(responses=(ProduceTopicResponse(partition_responses=(part,), **named),))


def publish(brokers: ClusterMetadata, topic: str, values: list[bytes], *, codec: str = "none", **options: Any) -> int:
    """Publish through a producer that does not number its batches."""
    settings = ProducerSettings(compression=codec, idempotent=False)
    transport = ModernTransport(brokers, settings)
    dispatcher = Dispatcher(transport, settings)
    producer = Producer(SyncSender(dispatcher.send, transport.close), dispatcher, settings)
    return publish_values((producer,), topic, values, **options)


def versions_of(broker: FakeBroker) -> set[int]:
    return {one.version for one in broker.heard if one.api.key == PRODUCE}


@pytest.mark.parametrize("version", range(NEWEST + 1))
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_batches_go_to_the_leaders_by_turns_in_every_version(
    version: int, codec: str, taking: OpenCluster, open_brokers: OpenBrokers
) -> None:
    cluster, taken = taking(version)
    told: list[int] = []
    assert publish(open_brokers(cluster), "clicks", PAYLOADS, codec=codec, batch_size=4, on_sent=told.append) == 10
    assert taken == [(0, 0, PAYLOADS[:4]), (1, 1, PAYLOADS[4:8]), (0, 0, PAYLOADS[8:])]
    assert told == [4, 4, 2]
    assert versions_of(cluster.brokers[0]) == {version}


def test_without_topic_ids_a_topic_goes_by_its_name(taking: OpenCluster, open_brokers: OpenBrokers) -> None:
    cluster, taken = taking(topic_id=NULL_UUID)
    cluster.offered = {**cluster.offered, PRODUCE: (0, NEWEST)}
    publish(open_brokers(cluster), "clicks", PAYLOADS)
    assert (versions_of(cluster.brokers[0]), len(taken)) == ({12}, 1)


# fault B01
def test_a_leader_that_moved_is_followed(taking: OpenCluster, open_brokers: OpenBrokers) -> None:
    cluster, taken = taking()
    brokers = open_brokers(cluster)
    publish(brokers, "clicks", PAYLOADS[:1])
    cluster.logs[0].leader = 1
    publish(brokers, "clicks", PAYLOADS[1:])
    assert taken == [(0, 0, PAYLOADS[:1]), (1, 0, PAYLOADS[1:])]


@pytest.mark.parametrize(("version", "known"), [(2, False), (6, False), (7, True)])
def test_zstd_goes_to_brokers_that_know_it(
    version: int, known: bool, taking: OpenCluster, open_brokers: OpenBrokers
) -> None:
    cluster, taken = taking(version)
    if known:
        publish(open_brokers(cluster), "clicks", PAYLOADS, codec="zstd")
        assert taken == [(0, 0, PAYLOADS)]
    else:
        with pytest.raises(Unsupported, match="zstd"):
            publish(open_brokers(cluster), "clicks", PAYLOADS, codec="zstd")
        assert not taken


def test_a_refusal_says_what_was_refused(taking: OpenCluster, open_brokers: OpenBrokers) -> None:
    cluster, _ = taking()
    cluster.brokers[0].handlers[PRODUCE] = lambda one: answered(one, 0, TOO_LARGE)
    with pytest.raises(BrokerError) as raised:
        publish(open_brokers(cluster), "clicks", PAYLOADS)
    assert raised.value.code == TOO_LARGE


def test_a_topic_that_lacks_is_asked_for_and_what_is_not_made_is_told(
    taking: OpenCluster, open_brokers: OpenBrokers
) -> None:
    cluster, _ = taking()
    with pytest.raises(LeaderMoved, match="have not created it"):
        publish(open_brokers(cluster), "other", PAYLOADS)
    requests: list[Any] = [one.request for one in cluster.heard(METADATA)]
    assert sum(request.allow_auto_topic_creation for request in requests) == ATTEMPTS


def test_publishing_nothing_asks_for_no_topic(taking: OpenCluster, open_brokers: OpenBrokers) -> None:
    cluster, _ = taking()
    assert publish(open_brokers(cluster), "other", []) == 0
    assert cluster.heard(METADATA) == []


def test_no_broker_is_asked_for_a_name_that_no_topic_may_have(taking: OpenCluster, open_brokers: OpenBrokers) -> None:
    cluster, _ = taking()
    with pytest.raises(NodeMalformed):
        publish(open_brokers(cluster), "a/b", PAYLOADS)
    assert cluster.heard(METADATA) == []
