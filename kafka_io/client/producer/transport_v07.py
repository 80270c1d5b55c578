"""Sending to 0.7: PRODUCE, or MULTIPRODUCE for several topics or partitions of one broker (facts, 1 and 7).

Nothing is ever answered. Bytes that could not all be handed over are no whole request, and a broker stores nothing of
it: they may be sent again. What was handed over and is not confirmed may be there or not: it is not sent again.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from kafka_io.client.link import Patience
from kafka_io.client.producer.registered import Brokers07
from kafka_io.client.producer.transport import Parcel, Transport
from kafka_io.client.retry import retrying
from kafka_io.client.v07.link import Link07
from kafka_io.client.v07.sets import checked_set, confirm
from kafka_io.errors import KafkaIOError, RegistryError, Unsupported, Where, placing
from kafka_io.model import Broker, BrokerPartition
from kafka_io.records.build import Record
from kafka_io.v07.messages import MultiProduce, Produce

Answer = int | KafkaIOError | None


class Transport07(Transport):
    """Sends to brokers of 0.7. With `confirms`, each request is followed by a question that shows it was taken in."""

    def __init__(
        self,
        brokers: Brokers07,
        *,
        patience: Patience,
        confirms: bool,
        max_message_bytes: int,
        sleep: Callable[[float], None],
    ) -> None:
        self._brokers = brokers
        self._patience = patience
        self._confirms = confirms
        self._max_message_bytes = max_message_bytes
        self._sleep = sleep
        self._links: dict[Broker, Link07] = {}
        self._closing = ExitStack()

    def targets(self, topic: str) -> Sequence[BrokerPartition]:
        """As the brokers are registered, or listed."""
        return self._brokers.targets(topic)

    def send(self, parcels: Sequence[Parcel]) -> list[Answer]:
        """One request to each broker; its error is that of all its parcels: a closed socket is all it ever says."""
        answers: dict[int, Answer] = {}
        of_broker: dict[int, dict[int, Produce]] = {}
        for number, parcel in enumerate(parcels):
            try:
                produce = self._produce(parcel)
            except KafkaIOError as error:
                answers[number] = error
            else:
                assert parcel.partition.broker is not None
                of_broker.setdefault(parcel.partition.broker, {})[number] = produce
        for broker_id, produces in of_broker.items():
            answers |= dict.fromkeys(produces, self._told(broker_id, tuple(produces.values())))
        return [answers[number] for number in range(len(parcels))]

    def _produce(self, parcel: Parcel) -> Produce:
        where = Where(topic=parcel.topic, partition=str(parcel.partition))
        if parcel.partition.broker is None:
            raise Unsupported("a partition of 0.7 is named with its broker, by a BrokerPartition", where)
        payloads = [_payload(record, parcel.since, where) for record in parcel.records]
        data = checked_set(payloads, parcel.codec, max_message_bytes=self._max_message_bytes, where=where)
        return Produce(parcel.topic, parcel.partition.partition, data)

    def _told(self, broker_id: int, produces: tuple[Produce, ...]) -> KafkaIOError | None:
        request = produces[0] if len(produces) == 1 else MultiProduce(produces)
        first = BrokerPartition(broker_id, produces[0].partition)
        try:
            with placing(Where(topic=produces[0].topic, partition=str(first))):
                link = self._link(broker_id)
                retrying(lambda: link.tell(request), self._patience.backoff, sleep=self._sleep)
                if self._confirms:
                    confirm(link, produces[0].topic, first)
        except KafkaIOError as error:
            return error
        return None

    def _link(self, broker_id: int) -> Link07:
        broker = self._brokers.broker(broker_id)
        if broker is None:
            raise RegistryError("the broker is not registered: it is down, or just gone")
        if broker not in self._links:
            self._links[broker] = self._closing.enter_context(Link07(broker, self._patience, sleep=self._sleep))
        return self._links[broker]

    def close(self) -> None:
        """End all connections; safe to call again."""
        self._closing.close()
        self._brokers.close()


def _payload(record: Record, since: int, where: Where) -> bytes:
    if record.value is None or since:
        raise Unsupported("messages of 0.7 have neither headers nor timestamps, and a value always", where)
    return record.value
