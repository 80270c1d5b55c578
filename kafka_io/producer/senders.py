"""The two senders behind a Producer: one sends at once, one through a queue that a background thread empties."""

import contextlib
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kafka_io.producer.bounded_queue import BoundedQueue
from kafka_io.producer.callbacks import Dispatch, Outcome
from kafka_io.producer.message import (
    Delivered,
    DeliveryFailure,
    Message,
    ProducerClosed,
    QueueFull,
    Undelivered,
    undelivered,
)
from kafka_io.producer.settings import Queueing

logger = logging.getLogger(__name__)

SentT_co = TypeVar("SentT_co", covariant=True)


class Sender(ABC, Generic[SentT_co]):
    """Accepts messages whose keys and values are bytes, and returns their result or a future of it."""

    @abstractmethod
    def send(self, message: Message) -> SentT_co:
        """Send one message, or queue it."""

    @abstractmethod
    def send_many(self, messages: Sequence[Message]) -> list[SentT_co]:
        """Send several messages, or queue them."""

    @abstractmethod
    def flush(self, timeout_s: float | None) -> None:
        """Wait until no message is in flight.

        Raises:
            Undelivered: messages that were not confirmed since the last call.
        """

    @abstractmethod
    def close(self, timeout_s: float | None) -> None:
        """Send queued messages until the time is up; safe to call again. Raises what `flush` does."""


class SyncSender(Sender[Delivered]):
    """Sends at once, on the caller's thread."""

    def __init__(self, dispatch: Dispatch, release: Callable[[], None]) -> None:
        self._dispatch = dispatch
        self._release = release
        self._closed = False

    def send(self, message: Message) -> Delivered:
        """Where the message was stored; raises the reason if it was not confirmed."""
        [outcome] = self._outcomes([message])
        if isinstance(outcome, Delivered):
            return outcome
        raise outcome

    def send_many(self, messages: Sequence[Message]) -> list[Delivered]:
        """Where the messages were stored.

        Raises:
            Undelivered: the messages that were not confirmed; all others were.
        """
        outcomes = self._outcomes(messages)
        failures = [
            DeliveryFailure(message=message, error=outcome)
            for message, outcome in zip(messages, outcomes, strict=True)
            if not isinstance(outcome, Delivered)
        ]
        if failures:
            raise undelivered(failures)
        return [outcome for outcome in outcomes if isinstance(outcome, Delivered)]

    def _outcomes(self, messages: Sequence[Message]) -> list[Outcome]:
        if self._closed:
            raise ProducerClosed("the producer is closed")
        return self._dispatch(messages)

    def flush(self, timeout_s: float | None) -> None:
        """Nothing is ever in flight here."""

    def close(self, timeout_s: float | None) -> None:  # noqa: ARG002 - nothing is in flight
        """End the connections."""
        if not self._closed:
            self._closed = True
            self._release()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    message: Message
    future: "Future[Delivered]" = field(default_factory=Future)


class AsyncSender(Sender["Future[Delivered]"]):
    """Puts messages into a queue. A background thread takes them out in batches, sends them and ends their futures.

    Args:
        dispatch: sends a batch.
        release: ends the connections; called when the background thread ends.
        interrupt: makes the retries in progress give up.
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
        self._failures: list[DeliveryFailure] = []
        # A daemon thread, because a broker may keep it waiting past the deadline of `close`: the process may end then.
        self._thread = threading.Thread(target=self._run, name="kafka-producer", daemon=True)
        self._thread.start()

    def send(self, message: Message) -> "Future[Delivered]":
        """Queue a message; returns a future of where it is stored.

        Raises:
            QueueFull: the queue is full, and `when_full` is `raise` or the time for waiting is up.
            ProducerClosed: the producer is closed.
            Undelivered: as many messages failed as the queue holds, and no `flush` reported them.
        """
        self._raise_failures(min_count=self._queueing.queue_size)
        queueing = self._queueing
        pending = _Pending(message=queueing.callbacks.before_enqueue(message))
        pending.future.set_running_or_notify_cancel()  # from here on the future cannot be cancelled
        blocks = queueing.when_full == "block"
        timeout_s = None if queueing.enqueue_timeout_ms is None else queueing.enqueue_timeout_ms / 1000
        added = self._queue.put(pending, timeout_s=timeout_s if blocks else 0.0)
        _call(queueing.callbacks.after_enqueue, pending.message, added=added)
        if not added:
            self._refuse(pending)
        return pending.future

    def send_many(self, messages: Sequence[Message]) -> "list[Future[Delivered]]":
        """Queue several messages. If one is refused with an error, those before it are sent all the same."""
        return [self.send(message) for message in messages]

    def _refuse(self, pending: _Pending) -> None:
        if self._queue.closed:
            raise ProducerClosed("the producer is closed")
        error = QueueFull(f"the queue holds queue_size = {self._queueing.queue_size} messages")
        if self._queueing.when_full != "drop":
            raise error
        self._settle(pending, error)

    def flush(self, timeout_s: float | None) -> None:
        """Wait until every message sent so far is confirmed or has failed. After a timeout the rest is still sent."""
        done = self._queue.join(self._queueing.close_timeout_s if timeout_s is None else timeout_s)
        self._raise_failures(min_count=1)
        if not done:
            raise Undelivered("the time for flush is up while messages are still in flight; they are still sent")

    def close(self, timeout_s: float | None) -> None:
        """Send the queued messages until the time is up; the rest fails with ProducerClosed."""
        if self._queue.closed:
            return
        self._queue.close()
        deadline_s = time.monotonic() + (self._queueing.close_timeout_s if timeout_s is None else timeout_s)
        self._thread.join(max(0.0, deadline_s - time.monotonic()))
        in_flight, waiting = self._queue.drain()
        _call(self._queueing.callbacks.on_close, [pending.message for pending in waiting])
        self._interrupt()
        for pending in in_flight:
            self._settle(pending, ProducerClosed("the deadline passed while the message was sent: it may be stored"))
        for pending in waiting:
            self._settle(pending, ProducerClosed("the deadline passed before the message was sent"))
        self._raise_failures(min_count=1)

    def _raise_failures(self, *, min_count: int) -> None:
        with self._lock:
            if len(self._failures) < min_count:
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
            _call(callbacks.after_dequeue, message)
        _call(callbacks.before_send, messages)
        try:
            outcomes = _checked(self._queueing.handler.handle(messages, self._dispatch), len(messages))
        except Exception as error:  # noqa: BLE001 - whatever a user's handler raises is the outcome of its messages
            outcomes = [error] * len(messages)
        for pending, outcome in zip(batch, outcomes, strict=True):
            self._settle(pending, outcome)

    def _settle(self, pending: _Pending, outcome: Outcome) -> None:
        # `close` and the background thread may settle the same message at the same time: the first outcome counts, and
        # the future raises InvalidStateError for the second.
        with contextlib.suppress(InvalidStateError):
            if isinstance(outcome, Delivered):
                pending.future.set_result(outcome)
                return
            pending.future.set_exception(outcome)
            with self._lock:
                self._failures.append(DeliveryFailure(message=pending.message, error=outcome))


def _checked(outcomes: Sequence[Outcome], count: int) -> Sequence[Outcome]:
    if len(outcomes) != count or not all(isinstance(outcome, Delivered | Exception) for outcome in outcomes):
        raise TypeError(f"the event handler must return one outcome for each of {count} messages, not {outcomes!r}")
    return outcomes


def _call(callback: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    """Call a user's callback; its errors are only logged."""
    try:
        callback(*args, **kwargs)
    except Exception:
        logger.exception("a callback of the producer failed")
