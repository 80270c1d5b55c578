"""Where users take part in the asynchronous producer: callbacks at each stage, and who handles a batch (seed 003)."""

from collections.abc import Callable, Sequence
from typing import Protocol

from kafka_io.client.producer.message import Delivered, Message

Outcome = Delivered | Exception
Dispatch = Callable[[Sequence[Message]], list[Outcome]]
"""Sends messages; what became of each, in their order."""


class CallbackHandler:
    """Is told what happens to messages in the queue. Subclass it, and override what you want to see.

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

    An error of `before_enqueue` goes to who sends. Errors of the others are logged: they change nothing.
    """

    def before_enqueue(self, message: Message) -> Message:
        """The message to put into the queue, this one or another; its value and key are bytes."""
        return message

    def after_enqueue(self, message: Message, *, added: bool) -> None:
        """The message is in the queue, or was not `added` for want of room."""

    def after_dequeue(self, message: Message) -> None:
        """The background thread has taken the message out."""

    def before_send(self, messages: Sequence[Message]) -> None:
        """These are sent now."""

    def on_close(self, rest: Sequence[Message]) -> None:
        """The producer is closing; `rest` is what was not sent by the deadline, and goes back to who sent it."""


class EventHandler(Protocol):
    """Handles what the background thread takes from the queue.

    >>> class Loud:
    ...     def handle(self, messages: Sequence[Message], dispatch: Dispatch) -> Sequence[Outcome]:
    ...         return dispatch([replace(one, value=one.value.upper()) for one in messages])
    >>> queue = Queueing(handler=Loud())
    >>> with open_producer(bootstrap=bootstrap, queue=queue) as producer:
    ...     _ = producer.send("loud", b"one")
    >>> read("loud")
    [b'ONE']
    """

    def handle(self, messages: Sequence[Message], dispatch: Dispatch) -> Sequence[Outcome]:
        """What became of each message, in their order. What is raised is what became of all."""
        ...


class SendingHandler:
    """Sends what comes, as it comes.

    >>> SendingHandler().handle([], lambda messages: [])
    []
    """

    def handle(self, messages: Sequence[Message], dispatch: Dispatch) -> Sequence[Outcome]:
        """As `dispatch` says."""
        return dispatch(messages)
