"""Another client reads the records that `publish` sends, with every version and each of its codecs."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from kafka_io.errors import Unsupported
from kafka_io.producer.publishing import publish_values
from resources.kafka import open_producer
from resources.settings.settings import Settings
from tests.brokers.reading import read
from tests.brokers.real import VERSIONS
from tests.brokers.releases import RELEASES
from tests.brokers.shared import SharedBroker

pytestmark = pytest.mark.brokers

PAYLOADS = [b"value " * (number % 9) for number in range(100)]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_topic_is_created_and_every_payload_is_a_record(
    version: str, shared: Callable[[str], SharedBroker], topic: str
) -> None:
    shared_broker = shared(version)
    codecs = shared_broker.release.codecs
    settings = Settings(lake="/nowhere", clusters={"main": shared_broker.cluster_settings()})
    with ExitStack() as closing:
        producers = [closing.enter_context(open_producer(settings, "main", compression=codec)) for codec in codecs]
        sent = publish_values(producers, topic, PAYLOADS * len(codecs), batch_size=len(PAYLOADS))
        assert sent == 100 * len(codecs)
    records = read(shared_broker.broker, topic)
    assert [record.value for record in records] == PAYLOADS * len(codecs)
    assert {record.key for record in records} == {None}
    assert all((record.timestamp is not None) == shared_broker.release.times for record in records)


@pytest.mark.parametrize("version", [version for version in VERSIONS if "zstd" not in RELEASES[version].codecs])
def test_a_codec_that_the_brokers_do_not_know_is_refused(
    version: str, shared: Callable[[str], SharedBroker], topic: str
) -> None:
    shared_broker = shared(version)
    settings = Settings(lake="/nowhere", clusters={"main": shared_broker.cluster_settings()})
    with open_producer(settings, "main", compression="zstd") as producer, pytest.raises(Unsupported, match="zstd"):
        publish_values((producer,), topic, PAYLOADS)
