"""librdkafka writes (idempotent, and in transactions), reads in a group, and resumes at its committed offsets."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafka_io.testing.modern.server import ModernBrokerServer
from tests.kafka_io.testing.modern.clients.conftest import (
    CODECS,
    OLD_CODECS,
    PARTITIONS,
    TOPIC,
    Row,
    address,
    in_order,
    rows,
)

WAIT_S = 20
NOTHING_MORE: Mapping[str, str] = {}
OLD = {"api.version.request": "false", "broker.version.fallback": "0.8.2.2", "log_level": "0"}


def write(
    broker: ModernBrokerServer, codec: str, count: int = 100, *, client: Mapping[str, str] = NOTHING_MORE
) -> None:
    producer = Producer({"bootstrap.servers": address(broker), "compression.type": codec, "linger.ms": 20, **client})
    errors: list[KafkaError | None] = []
    for partition, key, value in rows(codec, count):
        producer.produce(
            TOPIC, key=key, value=value, partition=partition, on_delivery=lambda error, _: errors.append(error)
        )
    producer.flush(WAIT_S)
    assert errors == count * [None]


def read(consumer: Any, count: int) -> list[Row]:
    rows: list[Row] = []
    deadline_s = time.monotonic() + WAIT_S
    while len(rows) < count:
        assert time.monotonic() < deadline_s, f"{len(rows)} of {count} records"
        message = consumer.poll(0.5)
        if message is not None:
            assert message.error() is None
            rows.append((message.partition(), message.key(), message.value()))
    return rows


@contextmanager
def grouped(broker: ModernBrokerServer, **settings: str) -> Iterator[Any]:
    defaults = {"group.id": "readers", "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    consumer = Consumer({"bootstrap.servers": address(broker), **defaults, **settings})
    try:
        yield consumer
    finally:
        consumer.close()


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_comes_back(broker: ModernBrokerServer, codec: str) -> None:
    write(broker, codec, client={"enable.idempotence": "true"})
    with grouped(broker) as consumer:
        consumer.subscribe([TOPIC])
        assert in_order(read(consumer, 100)) == in_order(rows(codec))


@pytest.mark.slow
def test_a_group_resumes_at_its_committed_offsets(broker: ModernBrokerServer) -> None:
    write(broker, "none", 40)
    with grouped(broker) as consumer:
        consumer.subscribe([TOPIC])
        assert len(read(consumer, 40)) == 40
        consumer.commit(asynchronous=False)
    write(broker, "gzip", 60)
    with grouped(broker) as consumer:
        consumer.subscribe([TOPIC])
        assert in_order(read(consumer, 60)) == in_order(rows("gzip", 60))
        assert consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=WAIT_S) == (0, 50)


def test_a_read_committed_consumer_gets_only_committed_records(broker: ModernBrokerServer) -> None:
    # fault R22
    producer = Producer({"bootstrap.servers": address(broker), "transactional.id": "t"})
    producer.init_transactions(WAIT_S)
    ends: list[tuple[str, Callable[[float], None]]] = [
        ("one", producer.commit_transaction),
        ("two", producer.abort_transaction),
        ("three", producer.commit_transaction),
    ]
    for codec, end in ends:
        producer.begin_transaction()
        for partition, key, value in rows(codec, 20):
            producer.produce(TOPIC, key=key, value=value, partition=partition)
        producer.flush(WAIT_S)
        end(WAIT_S)
    with grouped(broker, **{"isolation.level": "read_committed"}) as consumer:
        consumer.subscribe([TOPIC])
        first_rows, third_rows = in_order(rows("one", 20)), in_order(rows("three", 20))
        assert in_order(read(consumer, 40)) == [
            [*first, *third] for first, third in zip(first_rows, third_rows, strict=True)
        ]


def test_the_admin_client_creates_and_deletes_topics_and_describes_groups(broker: ModernBrokerServer) -> None:
    admin = AdminClient({"bootstrap.servers": address(broker)})
    for future in admin.create_topics([NewTopic("made", num_partitions=3, replication_factor=1)]).values():
        assert future.result(WAIT_S) is None
    assert len(admin.list_topics(timeout=WAIT_S).topics["made"].partitions) == 3
    write(broker, "none", 10)
    with grouped(broker) as consumer:
        consumer.subscribe([TOPIC])
        read(consumer, 10)
        described = admin.describe_consumer_groups(["readers"])["readers"].result(WAIT_S)
        assert [len(member.assignment.topic_partitions) for member in described.members] == [PARTITIONS]
    for future in admin.delete_topics(["made"]).values():
        assert future.result(WAIT_S) is None
    assert "made" not in admin.list_topics(timeout=WAIT_S).topics


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_a_client_of_0_8_writes_and_reads(old_broker: ModernBrokerServer, codec: str) -> None:
    write(old_broker, codec, client=OLD)
    with grouped(old_broker, **OLD) as consumer:
        consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
        assert in_order(read(consumer, 100)) == in_order(rows(codec))
