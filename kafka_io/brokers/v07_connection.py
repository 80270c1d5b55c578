"""A connection to a broker of 0.7."""

from collections.abc import Callable

from kafka_io import stopping
from kafka_io.brokers.connection import BrokerConnection, RetryPolicy
from kafka_io.brokers.fetch_rate import UNLIMITED, FetchRate
from kafka_io.brokers.retry import FirstContact, retrying
from kafka_io.errors import ConnectionLost, error_context
from kafka_io.model import Broker
from kafka_io.net.connection import Connection
from kafka_io.v07.messages import (
    AnyAnswer,
    AnyRequest,
    ClientConversation07,
    FetchAnswer07,
    FetchRequest07,
    MultiFetchAnswer07,
    MultiFetchRequest07,
)

_FETCHES = (FetchRequest07, MultiFetchRequest07)


class BrokerConnection07(BrokerConnection[AnyRequest, AnyAnswer]):
    """Keeps at most one connection to a broker of 0.7, and repeats requests as the retry policy allows."""

    def __init__(
        self,
        broker: Broker,
        retry_policy: RetryPolicy,
        *,
        fetch_rate: FetchRate = UNLIMITED,
        sleep: Callable[[float], None] = stopping.sleep,
    ) -> None:
        super().__init__(broker, fetch_rate.pace(broker), sleep)
        self._retry_policy = retry_policy
        self._contact = FirstContact(broker.address)

    def request(self, request: AnyRequest, *, accepted: Callable[[AnyAnswer], None] = lambda _: None) -> AnyAnswer:
        """The answer to `request`, sent again after retriable errors. Answers to requests sent ahead are dropped.

        `accepted` may raise an error for a well-formed answer; if the error is retriable, the request is sent again.

        Raises:
            NetworkError: the broker cannot be reached, also after all retries.
            WireError: the broker sends something that is not an answer.
        """

        def attempt() -> AnyAnswer:
            if isinstance(request, _FETCHES) and (wait_s := self._pace.wait_s()):
                self._sleep(wait_s)
            answer = self._without_pending().request(request)
            self._contact.is_made = True
            self._count(answer)
            accepted(answer)
            return answer

        with error_context(self.where):
            return retrying(attempt, self._retry_policy.backoff, sleep=self._sleep, contact=self._contact)

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

    def _count(self, answer: AnyAnswer) -> None:
        answers = answer.answers if isinstance(answer, MultiFetchAnswer07) else (answer,)
        self._pace.add(sum(len(part.message_set) for part in answers if isinstance(part, FetchAnswer07)))
