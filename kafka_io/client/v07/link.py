"""A broker of 0.7."""

from kafka_io.client.link import Link
from kafka_io.net.connection import Connection
from kafka_io.v07.conversation import ClientConversation
from kafka_io.v07.messages import AnyAnswer, AnyRequest


class Link07(Link[AnyRequest, AnyAnswer]):
    """Keeps at most one connection to a broker of 0.7."""

    def _connect(self, timeout_s: float) -> Connection[AnyRequest, AnyAnswer]:
        return Connection[AnyRequest, AnyAnswer].open(self.broker, ClientConversation(), timeout_s=timeout_s)
