"""Each block of the page is a whole settings file, and logs in as its cloud wants (fault F09)."""

import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_io.net.sasl.mechanisms import mechanism_of
from kafka_io.net.security import Sasl, Tls
from resources.settings.settings import Settings
from tests.docs.pages import ROOT, blocks_of

PAGE = ROOT / "docs" / "my-kafka-is.md"
HEADING = "My Kafka is "
OWN, NONE = "a cluster of my own", "none of these"


class Way(NamedTuple):
    """A way to log in: the port of the address, the mechanism, and whether there is a client certificate."""

    port: str
    mechanism: str | None
    certificate: bool = False


WAYS = {
    "Confluent Cloud": [Way("9092", "PLAIN")],
    "Amazon MSK": [Way("9098", "OAUTHBEARER"), Way("9096", "SCRAM-SHA-512")],
    "Azure Event Hubs": [Way("9093", "PLAIN"), Way("9093", "OAUTHBEARER")],
    "Redpanda": [Way("9092", None), Way("9092", "SCRAM-SHA-256")],
    "Aiven for Apache Kafka": [Way("12693", None, certificate=True), Way("12704", "SCRAM-SHA-256")],
    "Strimzi on Kubernetes": [Way("9093", "SCRAM-SHA-512"), Way("9093", None, certificate=True)],
}
REGISTRIES = {"Confluent Cloud": 1, "Redpanda": 2, "Aiven for Apache Kafka": 1}
"""How many blocks of a section have a schema registry."""


def settings_by_kafka() -> dict[str, list[Settings]]:
    """The settings of each section, by the Kafka in its heading."""
    parts = PAGE.read_text(encoding="utf-8").split(f"\n## {HEADING}")
    return {
        part.partition(":")[0]: [
            Settings.of(tomllib.loads(block.text), folder=Path("/etc/penstock"))
            for block in blocks_of(part)
            if block.language == "toml"
        ]
        for part in parts[1:]
    }


def tls_of(settings: Settings) -> Tls | None:
    return settings.clusters["main"].security.tls


def sasl_of(settings: Settings) -> Sasl | None:
    return settings.clusters["main"].security.sasl


def way_of(settings: Settings) -> Way:
    """How the cluster of a block is reached."""
    (cluster,) = settings.clusters.values()
    assert cluster.bootstrap is not None
    (port,) = {address.rpartition(":")[2] for address in cluster.bootstrap.split(",")}
    tls, sasl = tls_of(settings), sasl_of(settings)
    return Way(port, sasl.mechanism if sasl else None, certificate=tls is not None and tls.certificate is not None)


def test_each_kafka_has_settings_with_its_port_and_its_login() -> None:
    by_kafka = settings_by_kafka()
    assert [*by_kafka] == [*WAYS, OWN, NONE]
    assert {kafka: [way_of(settings) for settings in by_kafka[kafka]] for kafka in WAYS} == WAYS
    for kafka, ways in WAYS.items():
        assert sum(bool(settings.registries) for settings in by_kafka[kafka]) == REGISTRIES.get(kafka, 0), kafka
        for settings, way in zip(by_kafka[kafka], ways, strict=True):
            # Only the settings for brokers inside of one's own network are without TLS.
            assert (tls_of(settings) is None) == (way.mechanism is None and not way.certificate), kafka


def test_each_generation_of_a_cluster_of_my_own_has_an_address() -> None:
    (settings,) = settings_by_kafka()[OWN]
    addresses = [
        (cluster.zookeeper is not None, cluster.bootstrap is not None) for cluster in settings.clusters.values()
    ]
    assert addresses == [(True, False), (True, True), (False, True)]


def test_event_hubs_gets_the_whole_connection_string(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = (
        "Endpoint=sb://my-namespace.servicebus.windows.net/;SharedAccessKeyName=penstock;SharedAccessKey=ab+/c="
    )
    monkeypatch.setenv("EVENT_HUBS_CONNECTION_STRING", connection)
    shared_key, entra = (sasl_of(settings) for settings in settings_by_kafka()["Azure Event Hubs"])
    assert shared_key is not None
    assert mechanism_of(shared_key).first() == f"\0$ConnectionString\0{connection}".encode()
    assert entra is not None
    assert entra.client_credentials is not None
    # The scope is a resource, which is the namespace of the address.
    assert entra.client_credentials.scope == "https://my-namespace.servicebus.windows.net/.default"


def test_the_table_of_ports_has_the_ports_of_the_settings() -> None:
    section = PAGE.read_text(encoding="utf-8").partition(f"## {HEADING}Amazon MSK")[2]
    for way in WAYS["Amazon MSK"]:
        assert f" | {way.port} | {int(way.port) + 100} | " in section
