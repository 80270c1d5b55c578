"""What real brokers say about themselves and about their client: their release, and the rights for topics."""

from collections.abc import Callable

import pytest

from kafka_io.brokers.bootstrap import BOOTSTRAP_ID
from kafka_io.brokers.broker_description import TopicOperation, release_of, topic_operations
from resources.kafka import open_cluster
from resources.settings.settings import Settings
from tests.brokers.real import VERSIONS
from tests.brokers.shared import SharedBroker

pytestmark = pytest.mark.brokers

REPORT_NO_RIGHTS = ("0.", "1.", "2.0", "2.1", "2.2")


@pytest.mark.parametrize("version", VERSIONS)
def test_release_and_rights_are_those_of_the_broker(
    version: str, shared: Callable[[str], SharedBroker], topic: str
) -> None:
    shared_broker = shared(version)
    shared_broker.broker.create_topic(topic)
    settings = Settings(lake="/nowhere", clusters={"main": shared_broker.cluster_settings()})
    with open_cluster(settings, "main") as cluster:
        metadata = cluster.metadata()
        metadata.all_topics()
        [broker] = {broker for broker in metadata.known_brokers if broker.id != BOOTSTRAP_ID}
        release = release_of(metadata.connection(broker).versions)
        rights = topic_operations(metadata)
    major, minor, *_ = version.split(".")
    assert f"{major}.{minor}" in release
    everything = frozenset(TopicOperation)  # this broker has no authorizer
    assert rights.get(topic) == (None if version.startswith(REPORT_NO_RIGHTS) else everything)
