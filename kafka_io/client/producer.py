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
from kafka_io.model import BrokerPartition
from kafka_io.records.build import message_set
from kafka_io.registry.paths import check_topic_name
from kafka_io.registry.zookeeper import Registry
from kafka_io.v07.messages import LATEST_TIME, Offsets, Produce

_REGISTRATION_S = 10.0
_PAUSE_S = 0.05


class Producer:
    """Sends batches of messages to one topic, a batch to one broker-partition, by turns.

    A broker that has not registered the topic yet gets the first batch in partition 0, which every broker has (seed
    000); once it has registered, all its partitions take turns.
    """

    def __init__(
        self,
        registry: Registry,
        topic: str,
        *,
        patience: Patience | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        check_topic_name(topic)
        self.topic = topic
        self._registry = registry
        self._sleep = sleep
        brokers = registry.brokers().found
        if not brokers:
            raise RegistryError("no broker is registered", Where(topic=topic))
        self._links = {broker.id: Link(broker, patience or Patience()) for broker in brokers}
        self._unconfirmed: set[BrokerPartition] = set()
        self._reached: set[int] = set()
        self._turns, self._unregistered = self._look()

    def send(self, payloads: Iterable[bytes], *, codec: str = "none") -> BrokerPartition:
        """Send one batch, compressed by `codec` (`none`, `gzip`, `snappy`); to which broker-partition it went.

        Raises:
            NetworkError: the broker went away; part of what was sent since the last `confirm` may be lost.
        """
        if self._unregistered and self._unregistered <= self._reached:
            self.confirm()
        target = next(self._turns)
        data = message_set(payloads, codec=CODEC_NUMBERS[codec])
        self._links[target.broker].tell(Produce(self.topic, target.partition, data))
        self._unconfirmed.add(target)
        self._reached.add(target.broker)
        return target

    def confirm(self) -> None:
        """Wait until the brokers have taken in everything sent so far, and have registered the topic.

        Raises:
            NetworkError: a broker closed the connection, as it does on a set it refuses.
            RegistryError: a broker does not register the topic.
        """
        for target in sorted(self._unconfirmed):
            link = self._links[target.broker]
            with placing(Where(topic=self.topic, partition=str(target))):
                link.tell(Offsets(self.topic, target.partition, LATEST_TIME, 1))
                link.collect()
        self._unconfirmed.clear()
        for _ in range(int(_REGISTRATION_S / _PAUSE_S)):
            if not self._unregistered & self._reached:
                return
            self._turns, self._unregistered = self._look()
            self._sleep(_PAUSE_S)
        raise RegistryError(
            f"not every broker registered the topic within {_REGISTRATION_S} s", Where(topic=self.topic)
        )

    def _look(self) -> tuple[Iterator[BrokerPartition], set[int]]:
        """Where to send by turns, and the brokers that do not know the topic yet."""
        entry = self._registry.topic(self.topic)
        shares = {one for one in entry.partitions if one.broker in self._links} if entry else set()
        unregistered = self._links.keys() - {one.broker for one in shares}
        return cycle(sorted(shares | {BrokerPartition(broker, 0) for broker in unregistered})), unregistered

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
        for payload_batch, codec in zip(_batched(payloads, batch), cycle(codecs), strict=False):
            producer.send(payload_batch, codec=codec)
            count += len(payload_batch)
            on_sent(len(payload_batch))
        producer.confirm()
    return count


def _batched(payloads: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    rest = iter(payloads)
    while batch := list(islice(rest, size)):
        yield batch
