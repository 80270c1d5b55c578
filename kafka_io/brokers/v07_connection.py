"""A broker of 0.7."""

from kafka_io.brokers.connection import BrokerConnection
from kafka_io.net.connection import Connection
from kafka_io.v07.conversation import ClientConversation07
from kafka_io.v07.messages import AnyAnswer, AnyRequest


class BrokerConnection07(BrokerConnection[AnyRequest, AnyAnswer]):
    """Keeps at most one connection to a broker of 0.7."""

    def _connect(self, timeout_s: float) -> Connection[AnyRequest, AnyAnswer]:
        return Connection[AnyRequest, AnyAnswer].open(self.broker, ClientConversation07(), timeout_s=timeout_s)
