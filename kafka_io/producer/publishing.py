"""Publishing plain values: batches without keys that go to the partitions of a topic in turn."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle, islice

from kafka_io.errors import Where, error_context
from kafka_io.model import BrokerPartition
from kafka_io.producer.message import Delivered, Message, Undelivered
from kafka_io.producer.producer import Producer


def publish_values(
    producers: Sequence[Producer[Delivered]],
    topic: str,
    values: Iterable[bytes],
    *,
    batch_size: int = 500,
    on_sent: Callable[[int], None] = lambda _count: None,
) -> int:
    """Send values as messages without keys, one batch to each partition in turn; returns how many were sent.

    On return the brokers have all of them. In 0.7 every broker that received a message has also registered the topic,
    so that consumers find it. Without values nothing is sent, and no topic is created.

    Args:
        producers: synchronous producers of one cluster that send in turn; several of them alternate between codecs.
        topic: it need not exist if the brokers create topics on first use.
        values: one message each.
        batch_size: messages that are sent together.
        on_sent: called after each batch with the number of its messages.

    Raises:
        NodeMalformed: the name is not a valid topic name.
        KafkaIOError: the first message that is not confirmed; messages before it were sent, later ones were not.
    """
    count = 0
    written: set[BrokerPartition] = set()
    with error_context(Where(topic=topic)):
        turns = zip(_batches(values, batch_size), cycle(producers), _partition_turns(producers[0], topic), strict=False)
        for batch, producer, partition in turns:
            _send(producer, [Message(topic=topic, value=value, partition=partition) for value in batch])
            written.add(partition)
            count += len(batch)
            on_sent(len(batch))
        producers[0].wait_until_registered(topic, written)
    return count


def _batches(values: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    """Lists of `size` values each, in order; the last may be shorter."""
    remaining = iter(values)
    while batch := list(islice(remaining, size)):
        yield batch


def _partition_turns(producer: Producer[Delivered], topic: str) -> Iterator[BrokerPartition]:
    """The topic's partitions in turn, without end.

    A broker of 0.7 that has no message of a topic lists none of its partitions and accepts only partition 0. It
    registers the others soon after the first message, so they are listed again after the first round.
    """
    first_round = producer.partitions_for(topic)
    yield from first_round
    producer.wait_until_registered(topic, first_round)
    yield from cycle(producer.partitions_for(topic))


def _send(producer: Producer[Delivered], messages: Sequence[Message]) -> None:
    try:
        producer.send_many(messages)
    except Undelivered as error:
        raise error.failures[0].error from error
