"""A message to send, and its result: delivered, failed or refused."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kafka_io.errors import NOWHERE, KafkaIOError, Where
from kafka_io.model import BrokerPartition

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message to send.

        >>> Message(topic="clicks", value=b"one", key=b"user-1").topic
        'clicks'

    Args:
        topic: it need not exist if the brokers create topics on first use.
        value: the input of the encoder; None deletes a key in a compacted topic.
        key: the input of the key encoder. The key chooses the partition; 0.7 does not store it.
        headers: names and values, from 0.11 on.
        timestamp_ms: milliseconds since 1970, from 0.10 on; None is the time of sending.
        partition: the partition to send to instead of the partitioner's choice: a number, or a BrokerPartition in 0.7.
    """

    topic: str
    value: Any
    key: Any = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: BrokerPartition | int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The offset at which a message was stored, and its partition.

        >>> Delivered(topic="clicks", partition=BrokerPartition(None, 3), offset=41).offset
        41

    `offset` is None if the broker does not report it: with acks 0, in 0.7, and for a batch that it had stored before.
    With a fixed list of brokers of 0.7, the number of `partition` is -1, because the broker chose the partition, and
    its broker is None if the list has no ids.
    """

    topic: str
    partition: BrokerPartition
    offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFailure:
    """A message that was not confirmed, and the reason.

    >>> DeliveryFailure(message=Message(topic="clicks", value=b"one"), error=QueueFull("no room")).message.value
    b'one'
    """

    message: Message
    error: Exception


class QueueFull(KafkaIOError):
    """The queue had no room for the message; it was not sent.

    >>> QueueFull("no room").retriable
    True
    """

    retriable = True


class ProducerClosed(KafkaIOError):
    """The producer was closed, or its deadline for closing passed, before the message was confirmed.

    >>> ProducerClosed("the producer is closed").retriable
    False
    """


class Undelivered(KafkaIOError):
    """Messages that were not confirmed; `failures` has them in the order in which they were sent.

    A message that was refused or never sent is not stored. After a NetworkError a message may be stored all the same.

        >>> failure = DeliveryFailure(message=Message(topic="clicks", value=b"one"), error=QueueFull("no room"))
        >>> [failure.message.value for failure in Undelivered("1 message", NOWHERE, (failure,)).failures]
        [b'one']
    """

    def __init__(self, reason: str, where: Where = NOWHERE, failures: Sequence[DeliveryFailure] = ()) -> None:
        super().__init__(reason, where)
        self.args = (reason, where, tuple(failures))
        self.failures = tuple(failures)


def undelivered(failures: Sequence[DeliveryFailure]) -> Undelivered:
    """The error for these failures; its text names the first one."""
    return Undelivered(
        f"{len(failures)} messages were not confirmed; the first error: {failures[0].error}", NOWHERE, failures
    )
