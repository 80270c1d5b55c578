"""A message on its way: what was asked for, and what became of it."""

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
        topic: it need not exist, where brokers make topics by themselves.
        value: what the encoder takes; None deletes a key in a compacted topic.
        key: what the encoder takes; it chooses the partition, and in 0.7 that is all it does.
        headers: names and values, from 0.11 on.
        timestamp_ms: since 1970, from 0.10 on; the time of sending if None.
        partition: where to, in place of the partitioner's choice: a number, or in 0.7 a BrokerPartition.
    """

    topic: str
    value: Any
    key: Any = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: BrokerPartition | int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """Where a message went.

        >>> Delivered(topic="clicks", partition=BrokerPartition(None, 3), offset=41).offset
        41

    `offset` is None where the broker does not tell: with acks 0, in 0.7, and of a batch it finds it has already.
    """

    topic: str
    partition: BrokerPartition
    offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A message that is not known to be delivered, and why.

    >>> Failure(message=Message(topic="clicks", value=b"one"), error=QueueFull("no room")).message.value
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
    """The producer was closed, or its deadline for closing came, before the message was confirmed.

    >>> ProducerClosed("the producer is closed").retriable
    False
    """


class Undelivered(KafkaIOError):
    """Messages are not known to be delivered: they come back here, in the order they were sent.

    What was refused or never sent is not there. After a NetworkError a message may be there all the same.

        >>> failure = Failure(message=Message(topic="clicks", value=b"one"), error=QueueFull("no room"))
        >>> [one.message.value for one in Undelivered("1 message", NOWHERE, (failure,)).failures]
        [b'one']
    """

    def __init__(self, reason: str, where: Where = NOWHERE, failures: Sequence[Failure] = ()) -> None:
        super().__init__(reason, where)
        self.args = (reason, where, tuple(failures))
        self.failures = tuple(failures)

    def placed(self, where: Where) -> "Undelivered":
        """The same error with the unknown parts of its place taken from `where`."""
        return type(self)(self.reason, self.where.within(where), self.failures)


def undelivered(failures: Sequence[Failure]) -> Undelivered:
    """The error that brings `failures` back, the first of them named."""
    return Undelivered(
        f"messages that are not confirmed: {len(failures)}; the first: {failures[0].error}", NOWHERE, failures
    )
