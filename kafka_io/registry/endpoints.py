"""The endpoints of a broker: one per listener, each with its security protocol."""

from dataclasses import dataclass

from kafka_io.errors import RegistryError
from kafka_io.model import Broker

PLAINTEXT = "PLAINTEXT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One listener of a broker. Before 0.10.2 a listener is named after its protocol."""

    listener: str
    protocol: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredBroker:
    """A broker with everything that it registered. `version` is that of its JSON, 0 for a broker of 0.7."""

    id: int
    endpoints: tuple[Endpoint, ...]
    version: int
    rack: str | None = None


class EndpointMissing(RegistryError):
    """The broker has no listener for the requested security protocol."""


def plaintext_endpoint(host: str, port: int) -> Endpoint:
    """The only endpoint of a broker before 0.9."""
    return Endpoint(listener=PLAINTEXT, protocol=PLAINTEXT, host=host, port=port)


def choose_endpoint(broker: RegisteredBroker, protocol: str) -> Broker:
    """The broker with its first endpoint for `protocol`, in the order of its `advertised.listeners`.

    Raises:
        EndpointMissing: the broker has no such endpoint.
    """
    for endpoint in broker.endpoints:
        if endpoint.protocol == protocol:
            return Broker(broker.id, endpoint.host, endpoint.port)
    known = ", ".join(f"{endpoint.listener} ({endpoint.protocol})" for endpoint in broker.endpoints)
    raise EndpointMissing(f"broker {broker.id} has no listener for {protocol}: it has {known}")
