"""The producer for every generation [kafka-0.7: Producers]."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Generic, TypeVar

from kafka_io.closing import Closing
from kafka_io.errors import Unsupported
from kafka_io.model import BrokerPartition, TopicPartition
from kafka_io.producer.audit_counts import AuditCounts
from kafka_io.producer.dispatch import Dispatcher
from kafka_io.producer.message import Headers, Message, Undelivered
from kafka_io.producer.senders import Sender
from kafka_io.producer.settings import ProducerSettings
from kafka_io.producer.transactions import TransactionManager

SentT = TypeVar("SentT")


@dataclass(eq=False, repr=False)
class Producer(Closing, Generic[SentT]):
    """Sends messages to topics; `open_producer` opens one. A context manager; any thread may send.

        >>> with open_producer(bootstrap=bootstrap) as producer:
        ...     producer.send("clicks", b"one", key=b"user-1")
        Delivered(topic='clicks', partition=BrokerPartition(broker=None, partition=0), offset=0)

    A synchronous producer returns when the message is confirmed. An asynchronous one, which has a queue, returns a
    future. `acks` defines what is confirmed. No failure is silent: an unconfirmed message raises its error, or is the
    error of its future, and `flush` or `close` raise it within Undelivered.

    Brokers of 0.7 never confirm. With `acks` other than 0, this producer sends an OFFSETS request over the same
    connection after each PRODUCE: the answer shows that the broker has accepted the messages. The broker may still lose
    them if it is killed before it flushes, and it drops messages above its own max.message.size without an error. The
    offset of a message is never known, and with a fixed list of brokers not even its partition.

    From 0.8 on a failed batch is sent again if that can help. The next batch of its partition waits meanwhile, so order
    is kept. With `acks="all"` and brokers from 0.11 on, a batch that was sent twice is stored once.
    """

    _sender: Sender[SentT]
    _dispatcher: Dispatcher
    _settings: ProducerSettings
    _audit: AuditCounts | None = None

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
            TypeError: the encoder does not accept the value or key.
            QueueFull: the queue is full, and `when_full` is `raise`.
            ProducerClosed: the producer is closed.
            KafkaIOError: the message was not confirmed. An asynchronous producer sets this error on the future instead.
        """
        message = Message(
            topic=topic, value=value, key=key, headers=tuple(headers), timestamp_ms=timestamp_ms, partition=partition
        )
        return self._sender.send(self._encoded(message))

    def send_many(self, messages: Iterable[Message]) -> list[SentT]:
        """Send several messages together, in their order within each partition.

        Raises:
            Undelivered: some were not confirmed. An asynchronous producer sets the errors on the futures instead.
        """
        return self._sender.send_many([self._encoded(message) for message in messages])

    def partitions_for(self, topic: str) -> Sequence[BrokerPartition]:
        """The partitions of a topic that messages can be sent to, sorted by broker, then partition.

        From 0.8 on brokers are asked to create a topic that does not exist. In 0.7 a broker that has not registered the
        topic yet counts with partition 0.

        Raises:
            NodeMalformed: the name is not a valid topic name.
            KafkaIOError: the partitions are not known.
        """
        return self._dispatcher.partitions_for(topic)

    def wait_until_registered(
        self, topic: str, partitions: Iterable[BrokerPartition], *, timeout_s: float = 10.0
    ) -> None:
        """Wait until the brokers of these partitions have registered the topic in ZooKeeper.

        Only 0.7 needs this: there a broker registers a topic some time after its first message, and consumers find the
        topic through ZooKeeper. Otherwise, or with a fixed list of brokers, it returns at once.

        Raises:
            RegistryError: a broker did not register the topic in time.
        """
        with self._dispatcher.lock:
            self._dispatcher.transport.wait_until_registered(topic, partitions, timeout_s=timeout_s)

    def flush(self, *, timeout_s: float | None = None) -> None:
        """Wait until every message is confirmed or has failed, for up to `timeout_s` (None: `close_timeout_s`).

        Then publish the counts, if the producer counts.

        Raises:
            Undelivered: messages that were not confirmed since the last call.
        """
        self._sender.flush(timeout_s)
        if self._audit is not None:
            self._audit.publish()
            self._audit.check()

    def close(self, *, timeout_s: float | None = None) -> None:
        """Send the messages in the queue until the time is up, and end the connections; safe to call again.

        If the producer counts, its last counts are published before.

        Raises:
            Undelivered: messages that were not confirmed since the last `flush`.
        """
        self._sender.close(timeout_s)
        if self._audit is not None:
            self._audit.check()

    def init_transactions(self) -> None:
        """Fence off the previous producer with this transactional id, and abort its transaction.

        The first `begin` does this too.

        Raises:
            Unsupported: the producer was opened without a transactional id.
            TransactionError: a transaction is open, or another producer has the id now.
            KafkaIOError: the brokers refused.
        """
        with self._dispatcher.lock:
            self._transactions.initialize()

    def begin(self) -> None:
        """Begin a transaction; all messages sent until `commit` or `abort` belong to it.

        Raises:
            TransactionError: a transaction is open, or another producer has the transactional id now.
            KafkaIOError: the brokers refused.
        """
        with self._dispatcher.lock:
            self._transactions.begin()

    def send_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit a consumer group's offsets (the next to read, by topic and partition) with the transaction.

        Raises:
            KafkaIOError: the brokers refused them; abort the transaction.
        """
        with self._dispatcher.lock:
            self._transactions.send_offsets(group, offsets)

    def commit(self) -> None:
        """Flush, and commit the transaction.

        Raises:
            Undelivered: a message was not confirmed; abort the transaction.
            TransactionError: no transaction was begun, or a part of it failed; abort it.
            KafkaIOError: the answer was lost, so the outcome is unknown. Close the producer and open another.
        """
        self._sender.flush(None)
        with self._dispatcher.lock:
            self._transactions.commit()

    def abort(self) -> None:
        """Abort the transaction. Its failed messages are not reported again.

        Raises:
            TransactionError: no transaction was begun.
            KafkaIOError: the brokers did not confirm. They abort the transaction by themselves when it times out.
        """
        try:
            self._sender.flush(None)
        except Undelivered:
            pass  # an aborted message need not be stored
        finally:
            with self._dispatcher.lock:
                self._transactions.abort()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A block whose messages form one transaction: committed at its end, aborted if an exception leaves it."""
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
        except Undelivered as undelivered:
            if error is None:
                raise
            error.add_note(str(undelivered))  # the block's own error stays the one that is raised

    def _encoded(self, message: Message) -> Message:
        return replace(
            message,
            value=self._settings.encoder.encode(message.value),
            key=self._settings.key_encoder.encode(message.key),
        )

    @property
    def _transactions(self) -> TransactionManager:
        if self._dispatcher.transport.transactions is None:
            raise Unsupported("transactions need a transactional_id in the ProducerSettings, and brokers from 0.11 on")
        return self._dispatcher.transport.transactions
