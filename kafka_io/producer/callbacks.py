"""Interfaces for user code inside the asynchronous producer: callbacks for each stage, and a handler for batches.

See [kafka-0.7: Producers].
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from kafka_io.producer.message import Delivered, Message

Outcome = Delivered | Exception
"""The result for one message: where it was delivered, or why it was not."""
Dispatch = Callable[[Sequence[Message]], list[Outcome]]
"""Sends messages and returns one outcome for each, in the same order."""


class CallbackHandler:
    """Callbacks for the stages of a message in the queue. Subclass it and override the methods you need.

        >>> class Counting(CallbackHandler):
        ...     sent = 0
        ...     def before_send(self, messages: Sequence[Message]) -> None:
        ...         self.sent += len(messages)
        >>> counting = Counting()
        >>> queue = Queueing(callbacks=counting)
        >>> with open_producer(bootstrap=bootstrap, queue=queue) as producer:
        ...     _ = producer.send("clicks", b"one")
        >>> counting.sent
        1

    An error in `before_enqueue` is raised to the caller of `send`. An error in any other callback is only logged.
    """

    def before_enqueue(self, message: Message) -> Message:
        """Return the message to put into the queue: this one or another. Its value and key are already bytes."""
        return message

    def after_enqueue(self, message: Message, *, added: bool) -> None:
        """The message is in the queue, or was not `added` because the queue is full or closed."""

    def after_dequeue(self, message: Message) -> None:
        """The background thread took the message out of the queue."""

    def before_send(self, messages: Sequence[Message]) -> None:
        """The background thread is about to send these messages."""

    def on_close(self, unsent: Sequence[Message]) -> None:
        """The producer closes. The `unsent` messages were not sent before the deadline, and are returned as failed."""


class EventHandler(Protocol):
    """Handles each batch that the background thread takes from the queue.

    >>> class Loud:
    ...     def handle(self, messages: Sequence[Message], dispatch: Dispatch) -> Sequence[Outcome]:
    ...         return dispatch([replace(message, value=message.value.upper()) for message in messages])
    >>> queue = Queueing(handler=Loud())
    >>> with open_producer(bootstrap=bootstrap, queue=queue) as producer:
    ...     _ = producer.send("loud", b"one")
    >>> read("loud")
    [b'ONE']
    """

    def handle(self, messages: Sequence[Message], dispatch: Dispatch) -> Sequence[Outcome]:
        """Return one outcome for each message, in the same order. An exception is the outcome of all of them."""
