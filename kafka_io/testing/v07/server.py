"""The embedded broker of Kafka 0.7: its server, the sessions of clients, and its entries in ZooKeeper."""

import socket
from contextlib import ExitStack
from typing import ClassVar

from kafka_io.model import Broker
from kafka_io.registry.zookeeper import Registry
from kafka_io.testing.broker import EmbeddedBroker, wall_ms
from kafka_io.testing.client_session import ClientSession
from kafka_io.testing.listener import OpenSession
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.logs import BrokerLogs07
from kafka_io.testing.v07.requests import HANDLERS, send
from kafka_io.v07.conversation import ServerConversation07
from kafka_io.v07.messages import AnyRequest


class BrokerServer07(EmbeddedBroker[BrokerConfig07, BrokerLogs07]):
    """A broker that speaks the 0.7 protocol over a log on disk.

    While it runs, it registers itself and each topic that it has a log of [kafka-0.7: Broker registry]. A topic is
    registered with its configured number of partitions, not with those that exist on disk. The nodes are ephemeral; the
    registry creates them again after a lost session.
    """

    LOGS_TYPE: ClassVar[type[BrokerLogs07]] = BrokerLogs07

    def _start_services(self, parts: ExitStack, broker: Broker) -> OpenSession:  # noqa: ARG002 - sessions need the logs alone
        return self._open_session

    def _open_session(self, client: socket.socket) -> ClientSession[AnyRequest]:
        return ClientSession(
            client,
            ServerConversation07(self.config.max_request_bytes),
            lambda request: send(client, HANDLERS[type(request)](request, self._logs)),
            send_timeout_ms=self.config.send_timeout_ms,
        )

    def _register_broker(self, registry: Registry, broker: Broker) -> None:
        registry.register_broker(broker, f"{broker.host}-{wall_ms()}")

    def _register_topic(self, registry: Registry, topic: str) -> None:
        registry.register_topic(topic, self.config.broker_id, self.config.partitions_of(topic))
