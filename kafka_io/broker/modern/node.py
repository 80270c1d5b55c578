"""One broker, as the APIs see it."""

from dataclasses import dataclass

from kafka_io.broker.clock import ClockMs
from kafka_io.broker.modern.arrivals import Arrivals
from kafka_io.broker.modern.config import ModernBrokerConfig
from kafka_io.broker.modern.groups.coordinator import Coordinator
from kafka_io.broker.modern.topics import Topics
from kafka_io.broker.modern.transactions import Transactions
from kafka_io.model import Broker


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What answers are made of; all of it may be used by many threads at once."""

    config: ModernBrokerConfig
    broker: Broker
    clock: ClockMs
    topics: Topics
    coordinator: Coordinator
    transactions: Transactions
    arrivals: Arrivals


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks: what it calls itself, where it is, and the version in which it is to be answered."""

    client_id: str
    host: str
    version: int
