"""Sending to 0.7: PRODUCE, or MULTIPRODUCE for several topics or partitions of one broker.

See [kafka-0.7: Framing, Messages, Requests, Errors, Producers].

A broker never answers these requests. If the connection breaks before all bytes of a request are handed over, the
broker has no whole request and stores nothing, so the request may be sent again. A request that was handed over but not
confirmed may be stored or not; it is not sent again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass

from kafka_io.brokers.retry import retrying
from kafka_io.brokers.v07_connection import BrokerConnection07
from kafka_io.compression import CODECS, CODECS_07
from kafka_io.error_codes import ErrorCode07
from kafka_io.errors import KafkaIOError, RegistryError, TooLarge, Unsupported, Where, error_context
from kafka_io.model import Broker, BrokerPartition, TopicPartition
from kafka_io.producer.dispatch import BatchOutcome, Transport
from kafka_io.producer.message import Message
from kafka_io.producer.partitioner import StringHashPartitioner
from kafka_io.producer.settings import ProducerSettings
from kafka_io.producer.v07.brokers import FixedBrokers, RegisteredBrokers
from kafka_io.records.build import message_set
from kafka_io.records.layout import HEADER_BYTES, LENGTH_BYTES
from kafka_io.v07.messages import (
    LATEST_TIME,
    RANDOM_PARTITION,
    MultiProduceRequest07,
    OffsetsAnswer07,
    OffsetsRequest07,
    ProduceRequest07,
)

_REGISTRATION_POLL_S = 0.1


@dataclass(eq=False)
class Transport07(Transport):
    """Sends to brokers of 0.7. Except with acks 0, an OFFSETS request after each PRODUCE shows that it was accepted."""

    default_partitioner = StringHashPartitioner
    brokers: FixedBrokers | RegisteredBrokers
    settings: ProducerSettings
    _: KW_ONLY
    sleep: Callable[[float], None]

    def __post_init__(self) -> None:
        self._connections: dict[Broker, BrokerConnection07] = {}
        self._closing = ExitStack()

    def partitions_for(self, topic: str) -> Sequence[BrokerPartition]:
        """The partitions that are registered, or one for each broker of a fixed list."""
        return self.brokers.partitions_for(topic)

    def stored_at(self, target: TopicPartition) -> BrokerPartition:
        return self.brokers.stored_at(target.within_topic)

    def send(self, batches: Mapping[TopicPartition, Sequence[Message]]) -> Mapping[TopicPartition, BatchOutcome]:
        """Send one request to each broker. Its error applies to all batches in it: a broker only closes the socket."""
        outcomes: dict[TopicPartition, BatchOutcome] = {}
        requests: dict[int, dict[TopicPartition, ProduceRequest07]] = {}
        for target, messages in batches.items():
            try:
                request = self._request(target, messages)
            except KafkaIOError as error:
                outcomes[target] = error
            else:
                requests.setdefault(target.within_topic.holder, {})[target] = request
        for broker_id, by_target in requests.items():
            outcomes |= dict.fromkeys(by_target, self._send_to(broker_id, tuple(by_target.values())))
        return outcomes

    def wait_until_registered(self, topic: str, partitions: Iterable[BrokerPartition], *, timeout_s: float) -> None:
        """Poll ZooKeeper until every broker of these partitions has registered the topic."""
        broker_ids = {partition.holder for partition in partitions}
        for _ in range(int(timeout_s / _REGISTRATION_POLL_S) + 1):
            if not broker_ids & self.brokers.unregistered(topic):
                return
            self.sleep(_REGISTRATION_POLL_S)
        raise RegistryError(f"not every broker registered the topic within {timeout_s} s", Where(topic=topic))

    def _request(self, target: TopicPartition, messages: Sequence[Message]) -> ProduceRequest07:
        """The messages as one message set, compressed as the settings say.

        Raises:
            TooLarge: a message is larger than `max_message_bytes`. A broker drops such a message without an error.
            Unsupported: 0.7 does not know the codec, the kind of partition, or a part of a message.
        """
        where = Where(topic=target.topic, partition=str(self.stored_at(target)))
        if target.broker is None:
            raise Unsupported("a partition of 0.7 belongs to a broker: name it with a BrokerPartition", where)
        payloads = [_payload(message, where) for message in messages]
        codec, max_bytes = self.settings.codec_of(target.topic), self.settings.max_message_bytes
        if codec not in CODECS_07:
            raise Unsupported(f"0.7 does not know {CODECS[codec].name}: choose none, gzip or snappy", where)
        data = message_set(payloads, codec=codec)
        # A compressed set is one message, whose payload is the compressed data.
        largest = len(data) - LENGTH_BYTES - HEADER_BYTES[1] if codec else max(map(len, payloads))
        if largest > max_bytes:
            raise TooLarge(f"a message of {largest} bytes is above max_message_bytes = {max_bytes}", where)
        return ProduceRequest07(target.topic, target.partition, data)

    def _send_to(self, broker_id: int, requests: tuple[ProduceRequest07, ...]) -> KafkaIOError | None:
        first = requests[0]
        request = first if len(requests) == 1 else MultiProduceRequest07(requests)
        partition = self.brokers.stored_at(BrokerPartition(broker_id, first.partition))
        where = Where(topic=first.topic, partition=str(partition))
        try:
            with error_context(where):
                connection = self._connection(broker_id)
                retrying(lambda: connection.send(request), self.settings.retry_policy.backoff, sleep=self.sleep)
                if self.settings.acks:
                    _confirm(connection, first, where)
        except KafkaIOError as error:
            return error
        return None

    def _connection(self, broker_id: int) -> BrokerConnection07:
        broker = self.brokers.broker(broker_id)
        if broker is None:
            raise RegistryError(f"broker {broker_id} is not registered in ZooKeeper: it is down or has just stopped")
        if broker not in self._connections:
            connection = BrokerConnection07(broker, self.settings.retry_policy, sleep=self.sleep)
            self._connections[broker] = self._closing.enter_context(connection)
        return self._connections[broker]

    def close(self) -> None:
        """End all connections; safe to call again."""
        self._closing.close()
        self.brokers.close()


def _payload(message: Message, where: Where) -> bytes:
    payload: bytes | None = message.value
    if payload is None or message.headers or message.timestamp_ms is not None:
        raise Unsupported("a message of 0.7 must have a value, and cannot have headers or a timestamp", where)
    return payload


def _confirm(connection: BrokerConnection07, request: ProduceRequest07, where: Where) -> None:
    """Wait until the broker has processed every request sent over the connection so far.

    0.7 never answers PRODUCE. But a broker handles the requests of a connection in order, so the answer to an OFFSETS
    request shows that it accepted everything before.

    Raises:
        NetworkError: the broker closed the connection, which it does when it refuses a message set.
    """
    # Any partition will do, and every broker has partition 0. RANDOM_PARTITION is valid only in PRODUCE.
    partition = 0 if request.partition == RANDOM_PARTITION else request.partition
    answer = connection.confirm(OffsetsRequest07(request.topic, partition, LATEST_TIME, 1))
    assert isinstance(answer, OffsetsAnswer07)
    ErrorCode07.check(answer.error, where)
