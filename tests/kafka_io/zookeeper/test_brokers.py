"""Brokers of any generation, as ZooKeeper lists them."""

from collections.abc import Callable
from typing import Any

import pytest

from kafka_io.errors import RegistryError
from kafka_io.model import Broker
from kafka_io.zookeeper.modern import Endpoint
from kafka_io.zookeeper.zookeeper import ZooKeeper
from tests.zookeeper_nodes import registered_endpoints

pytestmark = pytest.mark.zookeeper

V07 = b"a-1:a:9092"
V08 = b'{"version":1,"host":"b","port":9092}'
ONLY_SSL = b"""{"version":4,"host":null,"port":-1,"endpoints":["SSL://c:9093","INSIDE://d:9094"],
    "listener_security_protocol_map":{"SSL":"SSL","INSIDE":"SASL_SSL"}}"""


@pytest.mark.parametrize(
    ("release", "port"), [("0.8.2.2", 46243), ("0.9.0.1", 42415), ("0.10.2.2", 34467), ("2.8.2", 38047)]
)
def test_brokers_that_real_releases_registered_are_listed(
    release: str, port: int, load_release: Callable[[str], object], zookeeper: ZooKeeper
) -> None:
    load_release(release)
    listing = zookeeper.brokers()
    assert listing.entries == (Broker(1, "127.0.0.1", port),)
    assert listing.skipped == ()
    (endpoints,) = registered_endpoints(zookeeper).entries
    assert endpoints[0].broker.port == port


def test_a_broker_of_0_7_has_one_endpoint(kafka: Any, zookeeper: ZooKeeper) -> None:
    kafka.create("/brokers/ids/4", V07)
    assert registered_endpoints(zookeeper).entries == ((Endpoint("PLAINTEXT", "PLAINTEXT", Broker(4, "a", 9092)),),)


def test_a_broker_without_a_listener_for_the_protocol_is_skipped(kafka: Any, zookeeper: ZooKeeper) -> None:
    kafka.create("/brokers/ids/10", V08)
    kafka.create("/brokers/ids/9", ONLY_SSL)
    plain, secure = zookeeper.brokers(), zookeeper.brokers("SASL_SSL")
    assert plain.entries == (Broker(10, "b", 9092),)
    assert [(node.path, "SSL (SSL), INSIDE (SASL_SSL)" in node.reason) for node in plain.skipped] == [
        ("/brokers/ids/9", True)
    ]
    assert secure.entries == (Broker(9, "d", 9094),)
    assert [node.path for node in secure.skipped] == ["/brokers/ids/10"]
    assert [endpoints[0].broker.id for endpoints in registered_endpoints(zookeeper).entries] == [9, 10]
    assert zookeeper.brokers("INSIDE").entries == ()  # a listener's name is not its protocol


# fault Z04
def test_a_malformed_broker_is_skipped_with_its_reason(kafka: Any, zookeeper: ZooKeeper) -> None:
    kafka.create("/brokers/ids/1", V08)
    kafka.create("/brokers/ids/2", b'{"version":1')
    kafka.create("/brokers/ids/3", b'{"version":2,"endpoints":["PLAINTEXT://:9092"]}')
    kafka.create("/brokers/ids/4", b'{"version":1,"x":"' + b"x" * 900_000 + b'"}')
    kafka.create("/brokers/ids/5", b"\xff")
    listing = zookeeper.brokers()
    assert [broker.id for broker in listing.entries] == [1]
    assert sorted(node.path[-1] for node in listing.skipped) == ["2", "3", "4", "5"]


@pytest.mark.parametrize("values", [(V07, V08), (ONLY_SSL, V07), (V07, b"{")])
def test_brokers_of_two_generations_are_an_error_that_names_them(
    values: tuple[bytes, bytes], kafka: Any, zookeeper: ZooKeeper
) -> None:
    for broker_id, value in enumerate(values):
        kafka.create(f"/brokers/ids/{broker_id}", value)
    for ask in (zookeeper.brokers, lambda: registered_endpoints(zookeeper), zookeeper.topics, zookeeper.is_v07):
        with pytest.raises(
            RegistryError, match=r"two generations of Kafka share this part of ZooKeeper.*ids/[01].*ids/[01]"
        ):
            ask()
