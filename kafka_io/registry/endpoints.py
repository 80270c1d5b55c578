"""Where a broker listens: one endpoint per listener, each with the security protocol it speaks. Pure."""

from dataclasses import dataclass

from kafka_io.errors import RegistryError
from kafka_io.model import Broker

PLAINTEXT = "PLAINTEXT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One listener of a broker. Until 0.10.2 a listener has the name of its protocol."""

    listener: str
    protocol: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredBroker:
    """A broker with all that is registered of it; `version` is that of its node's JSON, 0 for a broker of 0.7."""

    id: int
    endpoints: tuple[Endpoint, ...]
    version: int
    rack: str | None = None


class EndpointMissing(RegistryError):
    """A broker that has no listener of the wanted security protocol."""


def plaintext_endpoint(host: str, port: int) -> Endpoint:
    """The only endpoint that a broker before 0.9 has."""
    return Endpoint(listener=PLAINTEXT, protocol=PLAINTEXT, host=host, port=port)


def choose_endpoint(broker: RegisteredBroker, protocol: str) -> Broker:
    """The broker at the first of its endpoints that speak `protocol`, in the order of its `advertised.listeners`.

    Raises:
        EndpointMissing: it has none.
    """
    for endpoint in broker.endpoints:
        if endpoint.protocol == protocol:
            return Broker(broker.id, endpoint.host, endpoint.port)
    known = ", ".join(f"{endpoint.listener} ({endpoint.protocol})" for endpoint in broker.endpoints)
    raise EndpointMissing(f"broker {broker.id} has no listener for {protocol}: it has {known}")
