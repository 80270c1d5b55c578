"""Which of a broker's addresses is used."""

import pytest

from kafka_io.errors import RegistryError
from kafka_io.model import Broker
from kafka_io.registry.endpoints import Endpoint, EndpointMissing, RegisteredBroker, choose_endpoint

BROKER = RegisteredBroker(
    id=3,
    version=4,
    endpoints=(
        Endpoint(listener="INTERNAL", protocol="SASL_SSL", host="inside", port=9094),
        Endpoint(listener="PLAINTEXT", protocol="PLAINTEXT", host="::1", port=9092),
        Endpoint(listener="EXTERNAL", protocol="SASL_SSL", host="outside", port=9095),
    ),
)


def test_the_first_endpoint_that_speaks_the_protocol_is_chosen() -> None:
    assert choose_endpoint(BROKER, "PLAINTEXT") == Broker(3, "::1", 9092)
    assert choose_endpoint(BROKER, "SASL_SSL") == Broker(3, "inside", 9094)


def test_a_listener_is_not_chosen_by_its_name() -> None:
    with pytest.raises(EndpointMissing, match=r"broker 3 has no listener for EXTERNAL: it has INTERNAL \(SASL_SSL\), "):
        choose_endpoint(BROKER, "EXTERNAL")
    assert issubclass(EndpointMissing, RegistryError)
