"""kafka-python writes, reads in a group, and resumes at its committed offsets."""

from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

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

OLD: dict[str, Any] = {"api_version": (0, 8, 2)}
WAIT_MS = 20_000


def write(broker: ModernBrokerServer, codec: str, count: int = 100, **settings: Any) -> None:
    compression = None if codec == "none" else codec
    with closing(
        KafkaProducer(bootstrap_servers=address(broker), compression_type=compression, **settings)
    ) as producer:
        sent = [
            producer.send(TOPIC, key=key, value=value, partition=partition)
            for partition, key, value in rows(codec, count)
        ]
        producer.flush(timeout=WAIT_MS / 1000)
        assert all(future.succeeded() for future in sent)


def read(consumer: Any, count: int) -> list[Row]:
    rows = []
    for message in consumer:
        rows.append((message.partition, message.key, message.value))
        if len(rows) == count:
            break
    return rows


def grouped(broker: ModernBrokerServer) -> Any:
    return closing(
        KafkaConsumer(
            TOPIC,
            bootstrap_servers=address(broker),
            group_id="readers",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            consumer_timeout_ms=WAIT_MS,
        )
    )


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_comes_back(broker: ModernBrokerServer, codec: str) -> None:
    write(broker, codec)
    with grouped(broker) as consumer:
        assert in_order(read(consumer, 100)) == in_order(rows(codec))


@pytest.mark.slow
def test_a_group_resumes_at_its_committed_offsets(broker: ModernBrokerServer) -> None:
    write(broker, "none", 40)
    with grouped(broker) as consumer:
        assert len(read(consumer, 40)) == 40
        consumer.commit()
    write(broker, "gzip", 60)
    with grouped(broker) as consumer:
        assert in_order(read(consumer, 60)) == in_order(rows("gzip", 60))
        assert consumer.end_offsets([TopicPartition(TOPIC, 0)]) == {TopicPartition(TOPIC, 0): 50}


def test_the_admin_client_lists_and_deletes_topics(broker: ModernBrokerServer) -> None:
    write(broker, "none", 2)
    with closing(KafkaAdminClient(bootstrap_servers=address(broker))) as admin:
        assert admin.list_topics() == [TOPIC]
        admin.delete_topics([TOPIC])
        assert admin.list_topics() == []


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_a_client_of_0_8_writes_and_reads(old_broker: ModernBrokerServer, codec: str) -> None:
    write(old_broker, codec, **OLD)
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    settings = {"bootstrap_servers": address(old_broker), "group_id": "readers", "enable_auto_commit": False}
    with closing(
        KafkaConsumer(**settings, auto_offset_reset="earliest", consumer_timeout_ms=WAIT_MS, **OLD)
    ) as consumer:
        consumer.assign(partitions)
        assert in_order(read(consumer, 100)) == in_order(rows(codec))
        consumer.commit()
    with closing(KafkaConsumer(**settings, **OLD)) as consumer:
        assert [consumer.committed(partition) for partition in partitions] == [50, 50]
