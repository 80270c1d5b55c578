"""The reader of kafka_io finds the topics, their bounds, and every record, in each generation."""

import pytest

from kafka_io.cluster.opening import open_cluster
from kafka_io.model import Generation, OffsetRange
from kafka_io.reader.reader import PlannedRange, ReadSettings
from kafka_io.testing.modern.server import ModernBrokerServer
from tests.kafka_io.testing.modern.clients.conftest import CODECS, OLD_CODECS, TOPIC, Row, address, in_order, rows
from tests.kafka_io.testing.modern.clients.test_confluent import OLD, write
from tests.kafka_io.testing.modern.conftest import StartModern


def read(broker: ModernBrokerServer) -> tuple[Generation, list[Row]]:
    """The generation of the broker, and all its records."""
    rows: list[Row] = []
    with open_cluster("main", bootstrap=address(broker), read_settings=ReadSettings()) as cluster:
        [topic] = cluster.topics().entries
        source = cluster.source(topic.partitions[0])
        reader = source.open()
        for partition, bounds in cluster.bounds(topic.name, topic.partitions).items():
            assert not isinstance(bounds, Exception)
            planned_range = PlannedRange(
                topic=TOPIC,
                offsets=OffsetRange(partition, bounds.earliest, bounds.latest),
                incarnation=topic.incarnation,
            )
            for batches in reader.read([planned_range]):
                for decoded in batches:
                    keys, values = (decoded.batch.column(name).to_pylist() for name in ("key", "value"))
                    rows += [(partition.partition, key, value) for key, value in zip(keys, values, strict=True)]
        reader.close()
        return source.generation, rows


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_comes_back(broker: ModernBrokerServer, codec: str) -> None:
    write(broker, codec)
    generation, rows_read = read(broker)
    assert (generation, in_order(rows_read)) == (Generation.MODERN, in_order(rows(codec)))


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_the_0_8_generation_is_detected(old_broker: ModernBrokerServer, codec: str) -> None:
    write(old_broker, codec, client=OLD)
    generation, rows_read = read(old_broker)
    assert (generation, in_order(rows_read)) == (Generation.V08, in_order(rows(codec)))


@pytest.mark.zookeeper
@pytest.mark.parametrize("generation", [Generation.V08, Generation.MODERN])
def test_topics_are_found_through_zookeeper(start_modern: StartModern, chroot: str, generation: Generation) -> None:
    broker = start_modern(zookeeper=chroot, generation=generation, partitions=2)
    write(broker, "none", 10, client=OLD if generation is Generation.V08 else {})
    with open_cluster("main", zookeeper=chroot) as cluster:
        topics = cluster.topics().entries
        while not (topics and topics[0].partitions):  # a topic is listed before the state of its partitions (fault Z07)
            topics = cluster.topics().entries
        [topic] = topics
        assert [partition.partition for partition in topic.partitions] == [0, 1]
        bounds = cluster.bounds(topic.name, topic.partitions)
        assert {partition.partition: getattr(offsets, "latest", offsets) for partition, offsets in bounds.items()} == {
            0: 5,
            1: 5,
        }
        assert cluster.source(topic.partitions[0]).generation is generation
