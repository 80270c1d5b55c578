"""Publishing to 0.7: PRODUCE requests spread over the broker-partitions of a topic (facts, 7).

A genuine broker never answers PRODUCE, and closes the connection on what it refuses. `confirm` asks each broker for an
offset on the same connection: brokers work in order, so an answer shows that everything before it was taken in. A
message above its max.message.size is the one thing a broker drops without a word (facts, 3): it is refused here.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import cycle

from kafka_io.client.batched import batched
from kafka_io.client.link import Patience
from kafka_io.client.v07.link import Link07
from kafka_io.client.v07.sets import MAX_MESSAGE_BYTES, checked_set, confirm
from kafka_io.client.v07.targets import Targets
from kafka_io.closing import Closing
from kafka_io.compression import CODEC_NUMBERS
from kafka_io.errors import RegistryError, Where, placing
from kafka_io.model import BrokerPartition
from kafka_io.registry.paths import check_topic_name
from kafka_io.registry.zookeeper import Registry
from kafka_io.v07.messages import Produce

_POLL_S = 0.1


class Publisher(Closing):
    """Sends batches of messages to one topic, a batch to one broker-partition, by turns.

    On a broker that has not registered the topic yet only partition 0 is used, which makes the broker register it.
    `targets` are the broker-partitions of one round; `spread` finds those that were registered since.

    Raises:
        NodeMalformed: no topic may have this name.
        RegistryError: no broker is registered, or the registry gives no answer.
    """

    def __init__(
        self,
        registry: Registry,
        topic: str,
        *,
        patience: Patience | None = None,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        check_topic_name(topic)
        self.topic = topic
        self._registry = registry
        self._max_message_bytes = max_message_bytes
        self._closing = ExitStack()
        self._links = {
            broker.id: self._closing.enter_context(Link07(broker, patience or Patience()))
            for broker in registry.brokers().found
        }
        if not self._links:
            raise RegistryError("no broker is registered", Where(topic=topic))
        self._used: set[int] = set()
        self._unconfirmed: dict[int, BrokerPartition] = {}
        self._take_turns(self._found())

    def send(self, payloads: Iterable[bytes], *, codec: str = "none") -> BrokerPartition:
        """Send one batch, compressed by `codec` (`none`, `gzip`, `snappy`); to which broker-partition it went.

        Raises:
            TooLarge: a message above `max_message_bytes`; nothing of the batch was sent.
            Unsupported: a codec that 0.7 does not know.
            NetworkError: the broker went away; part of what was sent since the last `confirm` may be lost.
        """
        data = checked_set(
            list(payloads),
            CODEC_NUMBERS[codec],
            max_message_bytes=self._max_message_bytes,
            where=Where(topic=self.topic),
        )
        target = next(self._turns)
        with placing(Where(topic=self.topic, partition=str(target))):
            self._links[target.holder].tell(Produce(self.topic, target.partition, data))
        self._used.add(target.holder)
        self._unconfirmed[target.holder] = target
        return target

    def confirm(self) -> None:
        """Wait until the brokers have taken in everything sent so far.

        Raises:
            NetworkError: a broker closed the connection, as it does on a set it refuses.
        """
        for target in tuple(self._unconfirmed.values()):
            confirm(self._links[target.holder], self.topic, target)
            del self._unconfirmed[target.holder]

    def spread(self, *, within_s: float = 10.0, sleep: Callable[[float], None] = time.sleep) -> None:
        """Wait until every broker that was sent something has registered the topic; from then on use all partitions.

        Raises:
            RegistryError: they did not in time.
        """
        for _ in range(int(within_s / _POLL_S) + 1):
            found = self._found()
            if not self._used & found.lacking:
                self._take_turns(found)
                return
            sleep(_POLL_S)
        raise RegistryError(f"not every broker registered the topic within {within_s} s", Where(topic=self.topic))

    def _found(self) -> Targets:
        """Among the brokers this producer knows; one that came later is left to the next."""
        return Targets.of(self._registry.topic(self.topic), self._links.keys())

    def _take_turns(self, found: Targets) -> None:
        self.targets = list(found.all)
        self._turns = cycle(self.targets)

    def close(self) -> None:
        """End all connections; safe to call again."""
        self._closing.close()


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
    """Send all payloads, `batch` to a request, spread over the topic's partitions; how many.

    On return all are taken in, and the topic is registered by every broker that has some of them.

    Args:
        registry: where the brokers are found.
        topic: it need not exist yet.
        payloads: a message each.
        codecs: `none`, `gzip` or `snappy`, by turns of requests.
        batch: messages in one request, and in one compressed message.
        patience: deadlines and retries.
        on_sent: told how many messages each request held.

    Raises:
        TooLarge: a message above MAX_MESSAGE_BYTES, which a broker would drop without a word.
        Unsupported: a codec that 0.7 does not know.
        NetworkError: a broker went away, or refused a batch by closing the connection.
        RegistryError: no broker is registered, or one that took messages does not register the topic.
    """
    count = 0
    with Publisher(registry, topic, patience=patience) as producer:
        first_round = len(producer.targets)
        for number, (payload_batch, codec) in enumerate(zip(batched(payloads, batch), cycle(codecs), strict=False)):
            if number == first_round:
                producer.confirm()
                producer.spread()
            producer.send(payload_batch, codec=codec)
            count += len(payload_batch)
            on_sent(len(payload_batch))
        producer.confirm()
        producer.spread()
    return count
