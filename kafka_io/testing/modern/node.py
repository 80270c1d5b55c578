"""The parts of the embedded broker that its API handlers use, and the sender of a request."""

from dataclasses import dataclass

from kafka_io.model import Broker
from kafka_io.testing.housekeeping import ClockMs
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.groups.coordinator import GroupCoordinator
from kafka_io.testing.modern.purgatory import FetchPurgatory
from kafka_io.testing.modern.topics import BrokerTopics
from kafka_io.testing.modern.transactions import TransactionCoordinator


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerNode:
    """The parts of one broker. Many threads may use them at once."""

    config: ModernBrokerConfig
    broker: Broker
    clock: ClockMs
    topics: BrokerTopics
    coordinator: GroupCoordinator
    transactions: TransactionCoordinator
    purgatory: FetchPurgatory


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The sender of a request: its client id, its address, and the API version of its request."""

    client_id: str
    host: str
    version: int
