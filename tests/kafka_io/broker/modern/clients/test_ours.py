"""Our own client finds the topics, their bounds, and every record, in each dialect."""

import pytest

from kafka_io.broker.modern.server import ModernBrokerServer
from kafka_io.client.opening import open_cluster
from kafka_io.client.reading import Reading, Span
from kafka_io.model import Generation
from tests.kafka_io.broker.modern.clients.conftest import CODECS, OLD_CODECS, TOPIC, Row, address, in_order, rows
from tests.kafka_io.broker.modern.clients.test_confluent import OLD, write
from tests.kafka_io.broker.modern.conftest import StartModern


def read(broker: ModernBrokerServer) -> tuple[Generation, list[Row]]:
    """What it speaks, and all that it holds."""
    found: list[Row] = []
    with open_cluster("main", bootstrap=address(broker), reading=Reading()) as cluster:
        [topic] = cluster.topics().found
        source = cluster.source(topic.partitions[0])
        reader = source.open()
        for place, bounds in cluster.bounds(topic.name, topic.partitions).items():
            assert not isinstance(bounds, Exception)
            span = Span(
                topic=TOPIC,
                id=place,
                start=bounds.earliest,
                stop=bounds.latest,
                incarnation=topic.incarnation,
            )
            for batches in reader.read([span]):
                for decoded in batches:
                    keys, values = (decoded.batch.column(name).to_pylist() for name in ("key", "value"))
                    found += [(place.partition, key, value) for key, value in zip(keys, values, strict=True)]
        reader.close()
        return source.generation, found


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_comes_back(broker: ModernBrokerServer, codec: str) -> None:
    write(broker, codec)
    generation, found = read(broker)
    assert (generation, in_order(found)) == (Generation.MODERN, in_order(rows(codec)))


@pytest.mark.parametrize("codec", OLD_CODECS)
def test_the_old_dialect_is_found_out(old_broker: ModernBrokerServer, codec: str) -> None:
    write(old_broker, codec, client=OLD)
    generation, found = read(old_broker)
    assert (generation, in_order(found)) == (Generation.V08, in_order(rows(codec)))


@pytest.mark.zookeeper
@pytest.mark.parametrize("generation", [Generation.V08, Generation.MODERN])
def test_topics_are_found_through_zookeeper(start_modern: StartModern, chroot: str, generation: Generation) -> None:
    broker = start_modern(zookeeper=chroot, generation=generation, partitions=2)
    write(broker, "none", 10, client=OLD if generation is Generation.V08 else {})
    with open_cluster("main", zookeeper=chroot) as cluster:
        found = cluster.topics().found
        while not (found and found[0].partitions):  # a topic is listed before the state of its partitions (Z07)
            found = cluster.topics().found
        [topic] = found
        assert [place.partition for place in topic.partitions] == [0, 1]
        bounds = cluster.bounds(topic.name, topic.partitions)
        assert {place.partition: getattr(one, "latest", one) for place, one in bounds.items()} == {0: 5, 1: 5}
        assert cluster.source(topic.partitions[0]).generation is generation
