"""The producer of every generation (seeds 000 and 003 for 0.7, 002 for 0.8 and 0.9, 004 later)."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Generic, TypeVar

from kafka_io.client.modern.leading import Place
from kafka_io.client.producer.dispatch import Dispatcher
from kafka_io.client.producer.message import Headers, Message, Undelivered
from kafka_io.client.producer.senders import Sender
from kafka_io.client.producer.settings import ProducerSettings
from kafka_io.client.producer.transactions import Transactions
from kafka_io.client.producer.transport import Transport
from kafka_io.closing import Closing
from kafka_io.errors import Unsupported
from kafka_io.model import BrokerPartition

SentT = TypeVar("SentT")


class Producer(Closing, Generic[SentT]):
    """Sends messages to topics; `open_producer` makes one. A context manager; any thread may send.

        >>> with open_producer(bootstrap=bootstrap) as producer:
        ...     producer.send("clicks", b"one", key=b"user-1")
        Delivered(topic='clicks', partition=BrokerPartition(broker=None, partition=0), offset=0)

    A synchronous producer answers when the message is confirmed; an asynchronous one, which has a queue, with a future.
    What is confirmed depends on `acks`. Nothing is lost in silence: what is not confirmed is raised, or ends the
    future, and comes back from `flush` or `close` as Undelivered.

    In 0.7 brokers never confirm. With `acks` other than 0, this producer asks the broker for an offset after each
    request, over the same connection: the answer shows that the broker has taken the messages in. It may still lose
    them if it is killed before it flushes, and drops what is above its own max.message.size without a word. Where a
    message landed inside its partition is never known, and with a fixed list of brokers not even in which.

    From 0.8 on a batch is tried again where that can help, and the next one of its partition waits meanwhile, so order
    holds. With `acks="all"` and brokers from 0.11 on a batch that was sent twice is stored once.
    """

    def __init__(
        self, sender: Sender[SentT], dispatcher: Dispatcher, transport: Transport, settings: ProducerSettings
    ) -> None:
        self._sender = sender
        self._dispatcher = dispatcher
        self._transport = transport
        self._settings = settings

    def send(
        self,
        topic: str,
        value: Any,
        *,
        key: Any = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
        partition: BrokerPartition | int | None = None,
    ) -> SentT:
        """Send one message, see Message.

        Raises:
            TypeError: the encoder does not take the value or key.
            QueueFull: the queue has no room, and is told to raise then.
            ProducerClosed: it is closed.
            KafkaIOError: the message is not confirmed; an asynchronous producer tells it by the future.
        """
        message = Message(
            topic=topic, value=value, key=key, headers=tuple(headers), timestamp_ms=timestamp_ms, partition=partition
        )
        return self._sender.send(self._encoded(message))

    def send_many(self, messages: Iterable[Message]) -> list[SentT]:
        """Send several messages together, in their order within each partition.

        Raises:
            Undelivered: those that are not confirmed; an asynchronous producer tells it by their futures.
        """
        return self._sender.send_many([self._encoded(message) for message in messages])

    def flush(self, *, timeout_s: float | None = None) -> None:
        """Wait until all that was sent is confirmed or has failed, for `close_timeout_s` if no other time is given.

        Raises:
            Undelivered: messages that are not confirmed, since this was asked last.
        """
        self._sender.flush(timeout_s)

    def close(self, *, timeout_s: float | None = None) -> None:
        """Send what is in the queue until the time is up, and end the connections; safe to call again.

        Raises:
            Undelivered: messages that are not confirmed, since `flush` was asked last.
        """
        self._sender.close(timeout_s)

    def init_transactions(self) -> None:
        """Shut out whoever had the transactional id before, and abort its transaction; `begin` does it if need be.

        Raises:
            Unsupported: the producer was opened without a transactional id.
            TransactionError: a transaction is open, or another producer has the id now.
            KafkaIOError: the brokers do not let us.
        """
        with self._dispatcher.lock:
            self._transport.begin_transactions()

    def begin(self) -> None:
        """Begin a transaction; all that is sent until `commit` or `abort` belongs to it.

        Raises:
            TransactionError: one is open, or another producer has the transactional id now.
            KafkaIOError: the brokers do not let us.
        """
        with self._dispatcher.lock:
            self._transport.begin_transactions()
            self._transactions.begin()

    def send_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        """Keep offsets to read next, by topic and partition, for a consumer group, if the transaction is committed.

        Raises:
            KafkaIOError: the brokers do not take them; then abort.
        """
        with self._dispatcher.lock:
            self._transactions.send_offsets(group, offsets)

    def commit(self) -> None:
        """Flush, and make the transaction hold.

        Raises:
            Undelivered: a message is not confirmed; then abort.
            TransactionError: none was begun, or part of it failed; then abort.
            KafkaIOError: the answer was lost: whether it holds is not known. Close the producer and open another.
        """
        self._sender.flush(None)
        with self._dispatcher.lock:
            self._transactions.commit()

    def abort(self) -> None:
        """Undo the transaction; messages of it that failed are not told again.

        Raises:
            TransactionError: none was begun.
            KafkaIOError: the brokers did not confirm it; they do it by themselves when its time is up.
        """
        try:
            self._sender.flush(None)
        except Undelivered:
            pass  # none of it is to hold
        finally:
            with self._dispatcher.lock:
                self._transactions.abort()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A block whose messages hold together: committed at its end, aborted if an error leaves it."""
        self.begin()
        try:
            yield
            self._sender.flush(None)
            self._transactions.check_open()
        except BaseException:
            self.abort()
            raise
        self.commit()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Undelivered as left:
            if error is None:
                raise
            error.add_note(str(left))

    def _encoded(self, message: Message) -> Message:
        return replace(
            message,
            value=self._settings.encoder.encode(message.value),
            key=self._settings.key_encoder.encode(message.key),
        )

    @property
    def _transactions(self) -> Transactions:
        if self._transport.transactions is None:
            raise Unsupported("transactions need a transactional_id, and brokers from 0.11 on")
        return self._transport.transactions
