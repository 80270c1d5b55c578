"""A connection to a broker of 0.7."""

import time
from collections.abc import Callable

from kafka_io.brokers.connection import BrokerConnection, RetryPolicy
from kafka_io.brokers.retry import retrying
from kafka_io.errors import ConnectionLost, error_context
from kafka_io.model import Broker
from kafka_io.net.connection import Connection
from kafka_io.v07.conversation import ClientConversation07
from kafka_io.v07.messages import AnyAnswer, AnyRequest


class BrokerConnection07(BrokerConnection[AnyRequest, AnyAnswer]):
    """Keeps at most one connection to a broker of 0.7, and repeats requests as the retry policy allows."""

    def __init__(
        self, broker: Broker, retry_policy: RetryPolicy, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        super().__init__(broker)
        self._retry_policy = retry_policy
        self._sleep = sleep

    def request(self, request: AnyRequest, *, accepted: Callable[[AnyAnswer], None] = lambda _: None) -> AnyAnswer:
        """The answer to `request`, sent again after retriable errors. Answers to requests sent ahead are dropped.

        `accepted` may raise an error for a well-formed answer; if the error is retriable, the request is sent again.

        Raises:
            NetworkError: the broker cannot be reached, also after all retries.
            WireError: the broker sends something that is not an answer.
        """

        def attempt() -> AnyAnswer:
            answer = self._without_pending().request(request)
            accepted(answer)
            return answer

        with error_context(self.where):
            return retrying(attempt, self._retry_policy.backoff, sleep=self._sleep)

    def confirm(self, request: AnyRequest) -> AnyAnswer:
        """The answer to `request` on the connection that carried the requests of `send`; it is never sent again.

        0.7 does not answer a Produce request. It processes the requests of a connection in order, so the answer to a
        later request shows that the earlier ones arrived.

        Raises:
            NetworkError: that connection is closed; requests on it may be lost.
        """
        with error_context(self.where):
            if self._connection is None or self._connection.closed:
                raise ConnectionLost("the connection is closed; what was sent on it may be lost")
            return self._connection.request(request)

    def _connect(self) -> Connection[AnyRequest, AnyAnswer]:
        timeout_s = self._retry_policy.timeout_s
        return Connection[AnyRequest, AnyAnswer].open(self.broker, ClientConversation07(), timeout_s=timeout_s)
