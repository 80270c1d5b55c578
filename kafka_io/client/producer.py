"""Publishing to 0.7: PRODUCE requests spread over the broker-partitions of a topic (facts, 7).

A genuine broker never answers PRODUCE, and closes the connection on what it refuses. `confirm` asks each broker for an
offset on the same connection: brokers work in order, so an answer shows that everything before it was taken in.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle, islice
from types import TracebackType
from typing import Self

from kafka_io.client.link import Link, Patience
from kafka_io.compression import CODEC_NUMBERS
from kafka_io.errors import RegistryError, Where, placing
from kafka_io.model import Broker, BrokerPartition
from kafka_io.records.build import message_set
from kafka_io.registry.paths import check_topic_name
from kafka_io.registry.zookeeper import Registry
from kafka_io.v07.messages import LATEST_TIME, Offsets, Produce


class Producer:
    """Sends batches of messages to one topic, a batch to one broker-partition, by turns.

    A topic that is not registered yet goes to partition 0 of each broker, which makes them register it.
    """

    def __init__(self, registry: Registry, topic: str, *, patience: Patience | None = None) -> None:
        check_topic_name(topic)
        self.topic = topic
        self._registry = registry
        self._patience = patience or Patience()
        self._links: dict[int, Link] = {}
        self._used: set[BrokerPartition] = set()
        partitions = self._partitions()
        self.first_round = len(partitions)
        self._turns = cycle(partitions)

    def send(self, payloads: Iterable[bytes], *, codec: str = "none") -> BrokerPartition:
        """Send one batch, compressed by `codec` (`none`, `gzip`, `snappy`); to which broker-partition it went.

        Raises:
            NetworkError: the broker went away; part of what was sent since the last `confirm` may be lost.
        """
        target = next(self._turns)
        data = message_set(payloads, codec=CODEC_NUMBERS[codec])
        self._links[target.broker].tell(Produce(self.topic, target.partition, data))
        self._used.add(target)
        return target

    def confirm(self) -> None:
        """Wait until the brokers have taken in everything sent so far.

        Raises:
            NetworkError: a broker closed the connection, as it does on a set it refuses.
        """
        for target in sorted(self._used):
            link = self._links[target.broker]
            with placing(Where(topic=self.topic, partition=str(target))):
                link.tell(Offsets(self.topic, target.partition, LATEST_TIME, 1))
                link.collect()
        self._used.clear()

    def spread(self, *, within_s: float = 10.0, sleep: Callable[[float], None] = time.sleep) -> int:
        """Wait until every broker has registered the topic, then use all its partitions; how many there are.

        Raises:
            RegistryError: they did not in time.
        """
        pause_s = 0.05
        for _ in range(int(within_s / pause_s) + 1):
            entry = self._registry.topic(self.topic)
            registered = {partition.broker for partition in entry.partitions} if entry else set()
            if entry and registered >= self._links.keys():
                self.registered = True
                self._turns = cycle(entry.partitions)
                return len(entry.partitions)
            sleep(pause_s)
        raise RegistryError(f"not every broker registered the topic within {within_s} s", Where(topic=self.topic))

    def _partitions(self) -> list[BrokerPartition]:
        brokers: dict[int, Broker] = {broker.id: broker for broker in self._registry.brokers().found}
        if not brokers:
            raise RegistryError("no broker is registered", Where(topic=self.topic))
        self._links = {broker.id: Link(broker, self._patience) for broker in brokers.values()}
        entry = self._registry.topic(self.topic)
        shares = {partition for partition in entry.partitions if partition.broker in brokers} if entry else set()
        unregistered = brokers.keys() - {partition.broker for partition in shares}
        self.registered = not unregistered
        return sorted(shares | {BrokerPartition(broker, 0) for broker in unregistered})

    def close(self) -> None:
        """End all connections; safe to call again."""
        for link in self._links.values():
            link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def publish(
    registry: Registry,
    topic: str,
    payloads: Iterable[bytes],
    *,
    codecs: Sequence[str] = ("none",),
    batch: int = 500,
    patience: Patience | None = None,
    on_sent: Callable[[int], None] = lambda _count: None,
) -> int:
    """Send all payloads, `batch` to a request, spread over the topic's partitions; how many, once all are taken in.

    Args:
        registry: where the brokers are found.
        topic: it need not exist yet.
        payloads: a message each.
        codecs: `none`, `gzip` or `snappy`, by turns of requests.
        batch: messages in one request, and in one compressed message.
        patience: deadlines and retries.
        on_sent: told how many messages each request held.

    Raises:
        NetworkError: a broker went away, or refused a batch by closing the connection.
        RegistryError: no broker is registered.
    """
    count = 0
    with Producer(registry, topic, patience=patience) as producer:
        for number, (payload_batch, codec) in enumerate(zip(_batched(payloads, batch), cycle(codecs), strict=False)):
            if number == producer.first_round and not producer.registered:
                producer.confirm()
                producer.spread()
            producer.send(payload_batch, codec=codec)
            count += len(payload_batch)
            on_sent(len(payload_batch))
        producer.confirm()
    return count


def _batched(payloads: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    rest = iter(payloads)
    while batch := list(islice(rest, size)):
        yield batch
