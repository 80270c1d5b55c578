"""The embedded broker of Kafka 0.7: its server, the session of a client, and its entries in ZooKeeper."""

import socket
from collections.abc import Callable
from contextlib import ExitStack

from kafka_io.model import Broker
from kafka_io.registry.zookeeper import Registry
from kafka_io.testing.broker import EmbeddedBroker, wall_ms
from kafka_io.testing.client_session import ClientSession
from kafka_io.testing.listener import OpenSession
from kafka_io.testing.topic_registrar import TopicQueue, TopicRegistrar
from kafka_io.testing.v07.config import BrokerConfig07
from kafka_io.testing.v07.logs import BrokerLogs07
from kafka_io.testing.v07.requests import answer, send
from kafka_io.v07.conversation import ServerConversation07


class BrokerServer07(EmbeddedBroker[BrokerConfig07, BrokerLogs07]):
    """A broker that speaks the 0.7 protocol over a log on disk."""

    def _create_logs(self, on_change: Callable[[str], None]) -> BrokerLogs07:
        return BrokerLogs07(self.config, clock=self._clock, on_new_topic=on_change)

    def _create_services(self, parts: ExitStack, logs: BrokerLogs07, broker: Broker) -> OpenSession:  # noqa: ARG002 - sessions need the logs alone
        return lambda client: BrokerSession07(client, logs)

    def _create_registration(
        self,
        registry: Registry,
        broker: Broker,
        logs: BrokerLogs07,  # noqa: ARG002 - the number of partitions is a setting
        changed_topics: TopicQueue,
    ) -> TopicRegistrar:
        return BrokerRegistration07(registry, broker, self.config, changed_topics)


class BrokerSession07(ClientSession):
    """Serves one client with the 0.7 protocol: answers go out in the order of the requests."""

    def __init__(self, client: socket.socket, logs: BrokerLogs07) -> None:
        super().__init__(client, send_timeout_ms=logs.config.send_timeout_ms)
        self._logs = logs
        self._conversation = ServerConversation07(logs.config.max_request_bytes)

    def _step(self) -> bool:
        count = self._client.recv_into(self._conversation.space())
        request = self._conversation.filled(count) if count else None
        if request is not None:
            send(self._client, answer(request, self._logs))
        return count > 0


class BrokerRegistration07(TopicRegistrar):
    """Registers a 0.7 broker and each topic that it has a log of [kafka-0.7: Broker registry].

    A topic is registered with its configured number of partitions, not with those that exist on disk. The nodes are
    ephemeral; the registry creates them again after a lost session.
    """

    def __init__(self, registry: Registry, broker: Broker, config: BrokerConfig07, topics: TopicQueue) -> None:
        super().__init__(broker.id, topics)
        self._registry = registry
        self._broker = broker
        self._config = config

    def _register_broker(self) -> None:
        self._registry.register_broker(self._broker, f"{self._broker.host}-{wall_ms()}")

    def _register(self, topic: str) -> None:
        self._registry.register_topic(topic, self._broker.id, self._config.partitions_of(topic))
