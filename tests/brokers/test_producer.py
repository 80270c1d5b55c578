"""What a producer confirms is what another client reads, where the producer says it is; of every version."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from kafka_io.errors import BrokerError
from kafka_io.model import TopicPartition
from kafka_io.producer.message import Message
from kafka_io.producer.opening import open_producer
from kafka_io.producer.settings import ProducerSettings, Queueing
from tests.brokers.reading import read
from tests.brokers.real import VERSIONS
from tests.brokers.releases import RELEASES
from tests.brokers.shared import SharedBroker

pytestmark = pytest.mark.brokers

COUNT = 500
WAIT_S = 120.0
TRANSACTIONAL = [version for version in VERSIONS if RELEASES[version].transactions]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_message_is_where_its_future_says(
    version: str, shared: Callable[[str], SharedBroker], topic: str
) -> None:
    there = shared(version)
    release = there.release
    headers = (("a", b"1"), ("a", None)) if release.headers else ()
    for codec in release.codecs:
        settings = ProducerSettings(compression=codec)
        with open_producer(
            bootstrap=there.broker.bootstrap, settings=settings, queue=Queueing(queue_time_ms=20)
        ) as producer:
            futures = [
                producer.send(topic, b"%s %d" % (codec.encode(), number), key=b"%d" % (number % 7), headers=headers)
                for number in range(COUNT)
            ]
        said = {future.result(WAIT_S).offset: b"%s %d" % (codec.encode(), n) for n, future in enumerate(futures)}
        records = {record.offset: record for record in read(there.broker, topic)}
        assert {offset: records[offset].value for offset in said if offset is not None} == said
        assert {records[offset].headers for offset in said if offset is not None} == {headers}
    assert len(records) == COUNT * len(release.codecs)
    assert all((record.timestamp is not None) == release.times for record in records.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_without_acknowledgement_all_arrives(version: str, shared: Callable[[str], SharedBroker], topic: str) -> None:
    there = shared(version)
    bootstrap = there.broker.bootstrap
    with open_producer(bootstrap=bootstrap, settings=ProducerSettings(acks=1)) as producer:
        producer.send(topic, b"0")  # what a topic just made has no leader for yet would be gone without a word
    with open_producer(bootstrap=bootstrap, settings=ProducerSettings(acks=0)) as producer:
        producer.send_many([Message(topic=topic, value=b"%d" % number) for number in range(1, COUNT)])
    deadline_s = time.monotonic() + WAIT_S
    while len(records := read(there.broker, topic)) < COUNT:
        assert time.monotonic() < deadline_s, f"{len(records)} of {COUNT} messages came"
    assert [record.value for record in records] == [b"%d" % number for number in range(COUNT)]


@pytest.mark.parametrize("version", TRANSACTIONAL)
def test_only_what_was_committed_is_read_as_committed(
    version: str, shared: Callable[[str], SharedBroker], topic: str
) -> None:
    there = shared(version)
    bootstrap, settings = there.broker.bootstrap, ProducerSettings(transactional_id=topic)
    with open_producer(bootstrap=bootstrap, settings=settings) as producer:
        for value, end in [(b"one", producer.commit), (b"two", producer.abort), (b"three", producer.commit)]:
            producer.begin()
            producer.send(topic, value)
            producer.send_offsets(f"readers-{topic}", {TopicPartition(topic, 0): 1})
            end()
        with open_producer(bootstrap=bootstrap, settings=replace(settings, transaction_timeout_ms=1000)) as other:
            other.init_transactions()
        producer.begin()
        with pytest.raises(BrokerError, match="newer producer"):
            producer.send(topic, b"shut out")
    assert [record.value for record in read(there.broker, topic)] == [b"one", b"three"]
    assert [record.value for record in read(there.broker, topic, isolation="uncommitted")] == [b"one", b"two", b"three"]
