"""Another client reads each confirmed message at the offset that our producer returned, on brokers of every version."""

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
def test_every_message_is_at_the_offset_that_its_future_returns(
    version: str, shared: Callable[[str], SharedBroker], topic: str
) -> None:
    shared_broker = shared(version)
    release = shared_broker.release
    headers = (("a", b"1"), ("a", None)) if release.headers else ()
    for codec in release.codecs:
        settings = ProducerSettings(compression=codec)
        with open_producer(
            bootstrap=shared_broker.broker.bootstrap, settings=settings, queue=Queueing(queue_time_ms=20)
        ) as producer:
            futures = [
                producer.send(topic, b"%s %d" % (codec.encode(), number), key=b"%d" % (number % 7), headers=headers)
                for number in range(COUNT)
            ]
        confirmed = {future.result(WAIT_S).offset: b"%s %d" % (codec.encode(), n) for n, future in enumerate(futures)}
        records = {record.offset: record for record in read(shared_broker.broker, topic)}
        assert {offset: records[offset].value for offset in confirmed if offset is not None} == confirmed
        assert {records[offset].headers for offset in confirmed if offset is not None} == {headers}
    assert len(records) == COUNT * len(release.codecs)
    assert all((record.timestamp is not None) == release.times for record in records.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_without_acknowledgement_all_messages_arrive(
    version: str, shared: Callable[[str], SharedBroker], topic: str
) -> None:
    shared_broker = shared(version)
    bootstrap = shared_broker.broker.bootstrap
    with open_producer(bootstrap=bootstrap, settings=ProducerSettings(acks=1)) as producer:
        # The first message waits until the new topic has a leader: without acknowledgement it would be lost.
        producer.send(topic, b"0")
    with open_producer(bootstrap=bootstrap, settings=ProducerSettings(acks=0)) as producer:
        producer.send_many([Message(topic=topic, value=b"%d" % number) for number in range(1, COUNT)])
    deadline_s = time.monotonic() + WAIT_S
    while len(records := read(shared_broker.broker, topic)) < COUNT:
        assert time.monotonic() < deadline_s, f"only {len(records)} of {COUNT} messages arrived"
    assert [record.value for record in records] == [b"%d" % number for number in range(COUNT)]


@pytest.mark.parametrize("version", TRANSACTIONAL)
def test_only_committed_records_are_read_with_isolation_committed(
    version: str, shared: Callable[[str], SharedBroker], topic: str
) -> None:
    shared_broker = shared(version)
    bootstrap, settings = shared_broker.broker.bootstrap, ProducerSettings(transactional_id=topic)
    with open_producer(bootstrap=bootstrap, settings=settings) as producer:
        for value, end in [(b"one", producer.commit), (b"two", producer.abort), (b"three", producer.commit)]:
            producer.begin()
            producer.send(topic, value)
            producer.send_offsets(f"readers-{topic}", {TopicPartition(topic, 0): 1})
            end()
        with open_producer(bootstrap=bootstrap, settings=replace(settings, transaction_timeout_ms=1000)) as second:
            second.init_transactions()
        producer.begin()
        with pytest.raises(BrokerError, match="newer producer"):
            producer.send(topic, b"fenced")
    assert [record.value for record in read(shared_broker.broker, topic)] == [b"one", b"three"]
    assert [record.value for record in read(shared_broker.broker, topic, isolation="uncommitted")] == [
        b"one",
        b"two",
        b"three",
    ]
