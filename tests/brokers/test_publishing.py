"""What we publish is what another client reads, of every version and in each of its codecs."""

from collections.abc import Callable

import pytest

from kafka_io.errors import Unsupported
from resources.kafka import open_cluster
from resources.settings import Settings
from tests.brokers.reading import read
from tests.brokers.real import VERSIONS
from tests.brokers.releases import RELEASES
from tests.brokers.shared import SharedBroker

pytestmark = pytest.mark.brokers

PAYLOADS = [b"value " * (number % 9) for number in range(100)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_is_made_and_every_payload_is_a_record_of_it(
    version: str, shared: Callable[[str], SharedBroker], topic: str
) -> None:
    there = shared(version)
    codecs = there.release.codecs
    settings = Settings(lake="/nowhere", clusters={"main": there.found()})
    with open_cluster(settings, "main") as cluster:
        assert cluster.publish(topic, PAYLOADS * len(codecs), codecs=codecs, batch=len(PAYLOADS)) == 100 * len(codecs)
    found = read(there.broker, topic)
    assert [one.value for one in found] == PAYLOADS * len(codecs)
    assert {one.key for one in found} == {None}
    assert all((one.timestamp is not None) == there.release.times for one in found)


@pytest.mark.parametrize("version", [version for version in VERSIONS if "zstd" not in RELEASES[version].codecs])
def test_a_codec_that_the_brokers_do_not_know_is_refused(
    version: str, shared: Callable[[str], SharedBroker], topic: str
) -> None:
    there = shared(version)
    settings = Settings(lake="/nowhere", clusters={"main": there.found()})
    with open_cluster(settings, "main") as cluster, pytest.raises(Unsupported, match="zstd"):
        cluster.publish(topic, PAYLOADS, codecs=("zstd",))
