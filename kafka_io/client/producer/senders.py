"""The two ways to send under one Producer: at once, or through a queue that a background thread empties."""

import contextlib
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kafka_io.client.producer.bounded_queue import BoundedQueue
from kafka_io.client.producer.callbacks import Dispatch, Outcome
from kafka_io.client.producer.message import (
    Delivered,
    Failure,
    Message,
    ProducerClosed,
    QueueFull,
    Undelivered,
    undelivered,
)
from kafka_io.client.producer.settings import Queueing

logger = logging.getLogger(__name__)

SentT_co = TypeVar("SentT_co", covariant=True)


class Sender(ABC, Generic[SentT_co]):
    """Takes messages whose keys and values are bytes, and says of each what is known by then."""

    @abstractmethod
    def send(self, message: Message) -> SentT_co:
        """Send one message, or see to it that it is sent."""

    @abstractmethod
    def send_many(self, messages: Sequence[Message]) -> list[SentT_co]:
        """The same for several."""

    @abstractmethod
    def flush(self, timeout_s: float | None) -> None:
        """Wait until nothing is under way.

        Raises:
            Undelivered: messages that are not confirmed, since this was asked last.
        """

    @abstractmethod
    def close(self, timeout_s: float | None) -> None:
        """Send what is under way until the time is up; safe to call again. Raises what `flush` does."""


class SyncSender(Sender[Delivered]):
    """Sends at once, on the caller's thread."""

    def __init__(self, dispatch: Dispatch, release: Callable[[], None]) -> None:
        self._dispatch = dispatch
        self._release = release
        self._closed = False

    def send(self, message: Message) -> Delivered:
        """Where the message went; what kept it from that is raised."""
        [outcome] = self._sent([message])
        if isinstance(outcome, Delivered):
            return outcome
        raise outcome

    def send_many(self, messages: Sequence[Message]) -> list[Delivered]:
        """Where the messages went.

        Raises:
            Undelivered: those that are not confirmed; all others are.
        """
        outcomes = self._sent(messages)
        failures = [
            Failure(message=message, error=outcome)
            for message, outcome in zip(messages, outcomes, strict=True)
            if not isinstance(outcome, Delivered)
        ]
        if failures:
            raise undelivered(failures)
        return [outcome for outcome in outcomes if isinstance(outcome, Delivered)]

    def _sent(self, messages: Sequence[Message]) -> list[Outcome]:
        if self._closed:
            raise ProducerClosed("the producer is closed")
        return self._dispatch(messages)

    def flush(self, timeout_s: float | None) -> None:
        """Nothing is ever under way."""

    def close(self, timeout_s: float | None) -> None:  # noqa: ARG002 - nothing is under way
        """End the connections."""
        if not self._closed:
            self._closed = True
            self._release()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    message: Message
    future: "Future[Delivered]" = field(default_factory=Future)


class AsyncSender(Sender["Future[Delivered]"]):
    """Puts messages into a queue. A background thread takes them out in batches, sends, and ends their futures.

    Args:
        dispatch: sends a batch.
        release: ends the connections, once nothing is sent any more.
        interrupt: makes what is being tried again give up.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        queueing: Queueing,
        *,
        release: Callable[[], None],
        interrupt: Callable[[], None],
    ) -> None:
        self._dispatch = dispatch
        self._queueing = queueing
        self._release = release
        self._interrupt = interrupt
        self._queue: BoundedQueue[_Pending] = BoundedQueue(queueing.queue_size)
        self._lock = threading.Lock()
        self._failures: list[Failure] = []
        # A process may end while a broker keeps the thread waiting past the deadline of `close`.
        self._thread = threading.Thread(target=self._run, name="kafka-producer", daemon=True)
        self._thread.start()

    def send(self, message: Message) -> "Future[Delivered]":
        """A future that ends with where the message went, or with what kept it from that.

        Raises:
            QueueFull: there is no room, and `when_full` is `raise`, or the time to wait for it is up.
            ProducerClosed: the producer is closed.
            Undelivered: as many messages failed as the queue holds, and nobody asked for them by `flush` yet.
        """
        self._check_failures(self._queueing.queue_size)
        queueing = self._queueing
        pending = _Pending(message=queueing.callbacks.before_enqueue(message))
        pending.future.set_running_or_notify_cancel()  # it is on its way, and cannot be called back
        blocks = queueing.when_full == "block"
        timeout_s = None if queueing.enqueue_timeout_ms is None else queueing.enqueue_timeout_ms / 1000
        added = self._queue.put(pending, timeout_s=timeout_s if blocks else 0.0)
        _told(queueing.callbacks.after_enqueue, pending.message, added=added)
        if not added:
            self._refuse(pending)
        return pending.future

    def send_many(self, messages: Sequence[Message]) -> "list[Future[Delivered]]":
        """The same for several; where one is refused by an error, those before it are on their way."""
        return [self.send(message) for message in messages]

    def _refuse(self, pending: _Pending) -> None:
        if self._queue.closed:
            raise ProducerClosed("the producer is closed")
        error = QueueFull(f"the queue holds queue_size = {self._queueing.queue_size} messages")
        if self._queueing.when_full != "drop":
            raise error
        self._settle(pending, error)

    def flush(self, timeout_s: float | None) -> None:
        """Wait until all that was sent so far is confirmed or has failed; what is left then goes on."""
        done = self._queue.join(self._queueing.close_timeout_s if timeout_s is None else timeout_s)
        self._check_failures(1)
        if not done:
            raise Undelivered("messages are still under way; they go on")

    def close(self, timeout_s: float | None) -> None:
        """Send what is in the queue until the time is up; the rest comes back."""
        if self._queue.closed:
            return
        self._queue.close()
        deadline_s = time.monotonic() + (self._queueing.close_timeout_s if timeout_s is None else timeout_s)
        self._thread.join(max(0.0, deadline_s - time.monotonic()))
        under_way, rest = self._queue.drain()
        _told(self._queueing.callbacks.on_close, [pending.message for pending in rest])
        self._interrupt()
        for pending in under_way:
            self._settle(pending, ProducerClosed("the deadline came while the message was sent: it may be there"))
        for pending in rest:
            self._settle(pending, ProducerClosed("the deadline came before the message was sent"))
        self._check_failures(1)

    def _check_failures(self, least: int) -> None:
        with self._lock:
            if len(self._failures) < least:
                return
            failures, self._failures = self._failures, []
        raise undelivered(failures)

    def _run(self) -> None:
        linger_s = self._queueing.queue_time_ms / 1000
        try:
            while batch := self._queue.take(self._queueing.batch_size, linger_s):
                self._handle(batch)
                self._queue.done()
        finally:
            self._release()

    def _handle(self, batch: Sequence[_Pending]) -> None:
        callbacks = self._queueing.callbacks
        messages = [pending.message for pending in batch]
        for message in messages:
            _told(callbacks.after_dequeue, message)
        _told(callbacks.before_send, messages)
        try:
            outcomes = _checked(self._queueing.handler.handle(messages, self._dispatch), len(messages))
        except Exception as error:  # noqa: BLE001 - whatever a user's handler raises goes back with its messages
            outcomes = [error] * len(messages)
        for pending, outcome in zip(batch, outcomes, strict=True):
            self._settle(pending, outcome)

    def _settle(self, pending: _Pending, outcome: Outcome) -> None:
        # The thread that closes and the one that sends may both come to an outcome: the first counts.
        with contextlib.suppress(InvalidStateError):
            if isinstance(outcome, Delivered):
                pending.future.set_result(outcome)
                return
            pending.future.set_exception(outcome)
            with self._lock:
                self._failures.append(Failure(message=pending.message, error=outcome))


def _checked(outcomes: Sequence[Outcome], count: int) -> Sequence[Outcome]:
    if len(outcomes) != count or not all(isinstance(one, Delivered | Exception) for one in outcomes):
        raise TypeError(f"the event handler must tell what became of each of {count} messages, not {outcomes!r}")
    return outcomes


def _told(callback: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    """Call a user's callback, whose errors change nothing."""
    try:
        callback(*args, **kwargs)
    except Exception:
        logger.exception("a callback of the producer failed")
