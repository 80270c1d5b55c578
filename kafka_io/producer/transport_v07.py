"""Sending to 0.7: PRODUCE, or MULTIPRODUCE for several topics or partitions of one broker.

See [kafka-0.7: Requests, Producers].

A broker never answers these requests. If the connection breaks before all bytes of a request are handed over, the
broker has no whole request and stores nothing, so the request may be sent again. A request that was handed over but not
confirmed may be stored or not; it is not sent again.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack

from kafka_io.brokers.connection import RetryPolicy
from kafka_io.brokers.retry import retrying
from kafka_io.brokers.v07_connection import BrokerConnection07
from kafka_io.errors import KafkaIOError, RegistryError, Unsupported, Where, error_context
from kafka_io.model import Broker, BrokerPartition
from kafka_io.producer.transport import ProducerBatch, Transport
from kafka_io.producer.v07_brokers import WritablePartitionSource07
from kafka_io.producer.v07_message_sets import checked_set, confirm
from kafka_io.records.build import Record
from kafka_io.v07.messages import MultiProduceRequest07, ProduceRequest07

_REGISTRATION_POLL_S = 0.1


class Transport07(Transport):
    """Sends to brokers of 0.7. If `confirms`, an OFFSETS request after each PRODUCE shows that it was accepted."""

    def __init__(
        self,
        brokers: WritablePartitionSource07,
        *,
        retry_policy: RetryPolicy,
        confirms: bool,
        max_message_bytes: int,
        sleep: Callable[[float], None],
    ) -> None:
        self._brokers = brokers
        self._retry_policy = retry_policy
        self._confirms = confirms
        self._max_message_bytes = max_message_bytes
        self._sleep = sleep
        self._connections: dict[Broker, BrokerConnection07] = {}
        self._closing = ExitStack()

    def partitions_for(self, topic: str) -> Sequence[BrokerPartition]:
        """The partitions that are registered, or one for each broker of a fixed list."""
        return self._brokers.partitions_for(topic)

    def send(self, batches: Sequence[ProducerBatch]) -> list[int | KafkaIOError | None]:
        """Send one request to each broker. Its error applies to all batches in it: a broker only closes the socket."""
        answers: dict[int, int | KafkaIOError | None] = {}
        requests: dict[int, dict[int, ProduceRequest07]] = {}
        for index, batch in enumerate(batches):
            try:
                request = self._request(batch)
            except KafkaIOError as error:
                answers[index] = error
            else:
                requests.setdefault(batch.partition.holder, {})[index] = request
        for broker_id, by_index in requests.items():
            answers |= dict.fromkeys(by_index, self._send_to(broker_id, tuple(by_index.values())))
        return [answers[index] for index in range(len(batches))]

    def wait_until_registered(self, topic: str, partitions: Iterable[BrokerPartition], *, timeout_s: float) -> None:
        """Poll the registry until every broker of these partitions has registered the topic."""
        broker_ids = {partition.holder for partition in partitions}
        for _ in range(int(timeout_s / _REGISTRATION_POLL_S) + 1):
            if not broker_ids & self._brokers.unregistered(topic):
                return
            self._sleep(_REGISTRATION_POLL_S)
        raise RegistryError(f"not every broker registered the topic within {timeout_s} s", Where(topic=topic))

    def _request(self, batch: ProducerBatch) -> ProduceRequest07:
        where = Where(topic=batch.topic, partition=str(batch.partition))
        if batch.partition.broker is None:
            raise Unsupported("a partition of 0.7 belongs to a broker: name it with a BrokerPartition", where)
        payloads = [_payload(record, batch.since, where) for record in batch.records]
        data = checked_set(payloads, batch.codec, max_message_bytes=self._max_message_bytes, where=where)
        return ProduceRequest07(batch.topic, batch.partition.partition, data)

    def _send_to(self, broker_id: int, requests: tuple[ProduceRequest07, ...]) -> KafkaIOError | None:
        request = requests[0] if len(requests) == 1 else MultiProduceRequest07(requests)
        first = BrokerPartition(broker_id, requests[0].partition)
        try:
            with error_context(Where(topic=requests[0].topic, partition=str(first))):
                connection = self._connection(broker_id)
                retrying(lambda: connection.send(request), self._retry_policy.backoff, sleep=self._sleep)
                if self._confirms:
                    confirm(connection, requests[0].topic, first)
        except KafkaIOError as error:
            return error
        return None

    def _connection(self, broker_id: int) -> BrokerConnection07:
        broker = self._brokers.broker(broker_id)
        if broker is None:
            raise RegistryError(f"broker {broker_id} is not registered in ZooKeeper: it is down or has just stopped")
        if broker not in self._connections:
            connection = BrokerConnection07(broker, self._retry_policy, sleep=self._sleep)
            self._connections[broker] = self._closing.enter_context(connection)
        return self._connections[broker]

    def close(self) -> None:
        """End all connections; safe to call again."""
        self._closing.close()
        self._brokers.close()


def _payload(record: Record, since: int, where: Where) -> bytes:
    if record.value is None or since:
        raise Unsupported("a message of 0.7 must have a value, and cannot have headers or a timestamp", where)
    return record.value
