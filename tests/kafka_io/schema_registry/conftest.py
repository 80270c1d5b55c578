"""An embedded registry, and a client whose pauses are only recorded."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.retry import Backoff
from kafka_io.schema_registry.client import SchemaRegistry
from kafka_io.schema_registry.settings import SchemaRegistrySettings
from kafka_io.testing.schema_registry.server import EmbeddedSchemaRegistry


@dataclass(frozen=True)
class Client:
    """A client, and the pauses that it made in seconds."""

    registry: SchemaRegistry
    pauses: list[float] = field(default_factory=list)


MakeClient = Callable[..., Client]


@pytest.fixture
def embedded() -> Iterator[EmbeddedSchemaRegistry]:
    """A registry without schemas."""
    with EmbeddedSchemaRegistry() as registry:
        yield registry


@pytest.fixture
def client_of() -> MakeClient:
    """`client_of(url)` is a client of the registry there; further arguments are settings of the registry."""

    def make(url: str, *, attempts: int = 3, timeout_s: float = 20.0, wait_s: float = 0, **settings: Any) -> Client:
        pauses: list[float] = []
        policy = RetryPolicy(timeout_s=timeout_s, backoff=Backoff(attempts=attempts))
        registry = SchemaRegistry(
            "main",
            SchemaRegistrySettings(url=url, **settings),
            retry_policy=policy,
            sleep=pauses.append,
            wait_s=wait_s,
        )
        return Client(registry, pauses)

    return make
