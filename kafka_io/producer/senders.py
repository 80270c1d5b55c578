"""The two senders of a Producer: one sends at once, the other through a queue that a background thread empties."""

import contextlib
import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, TypeVar

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

T = TypeVar("T")
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


class BoundedQueue(Generic[T]):
    """Holds at most `size` waiting items. One thread takes them; taken items are in flight until it takes again."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: deque[T] = deque()
        self._in_flight: list[T] = []
        self._joining = 0  # threads inside `join`: while there is one, `take` does not linger
        self._changed = threading.Condition()
        self.closed = False  # a closed queue accepts no more items

    def put(self, item: T, *, timeout_s: float | None) -> bool:
        """Add an item, and wait up to `timeout_s` (None: without limit) for room.

        Returns False if there was no room in time, or if the queue is closed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.closed or len(self._waiting) < self._size, timeout_s)
            if self.closed or len(self._waiting) >= self._size:
                return False
            self._waiting.append(item)
            self._changed.notify_all()
            return True

    def take(self, max_items: int, linger_s: float) -> list[T]:
        """Take the first items, at most `max_items`; those of the last call are no longer in flight.

        It waits for one item, then up to `linger_s` for `max_items` of them, unless a thread joins or closes the queue.
        An empty list means that the queue is closed and empty.
        """
        with self._changed:
            self._in_flight = []
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting or self.closed)
            self._changed.wait_for(lambda: self._joining or self.closed or len(self._waiting) >= max_items, linger_s)
            batch = [self._waiting.popleft() for _ in range(min(max_items, len(self._waiting)))]
            # In the same critical section as the popleft: otherwise `join` could see neither waiting nor taken items.
            self._in_flight = batch
            self._changed.notify_all()
            return batch

    def join(self, timeout_s: float) -> bool:
        """Wait until nothing waits or is in flight; `take` does not linger meanwhile. Returns False on a timeout."""
        with self._changed:
            self._joining += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: not self._waiting and not self._in_flight, timeout_s)
            finally:
                self._joining -= 1

    def close(self) -> None:
        """Accept no more items, and wake every thread that waits for room or for items."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def drain(self) -> tuple[list[T], list[T]]:
        """Return the items in flight, and remove and return the waiting ones."""
        with self._changed:
            waiting = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
            return self._in_flight, waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    message: Message
    future: "Future[Delivered]" = field(default_factory=Future)


@dataclass(eq=False)
class AsyncSender(Sender["Future[Delivered]"]):
    """Puts messages into a queue. A background thread takes them out in batches, sends them and ends their futures.

    Args:
        dispatch: sends a batch.
        release: ends the connections; called when the background thread ends.
        interrupt: makes the retries in progress give up.
    """

    dispatch: Dispatch
    queueing: Queueing
    _: KW_ONLY
    release: Callable[[], None]
    interrupt: Callable[[], None]

    def __post_init__(self) -> None:
        self._queue: BoundedQueue[_Pending] = BoundedQueue(self.queueing.queue_size)
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
        self._raise_failures(min_count=self.queueing.queue_size)
        queueing = self.queueing
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
        error = QueueFull(f"the queue holds queue_size = {self.queueing.queue_size} messages")
        if self.queueing.when_full != "drop":
            raise error
        self._settle(pending, error)

    def flush(self, timeout_s: float | None) -> None:
        """Wait until every message sent so far is confirmed or has failed. After a timeout the rest is still sent."""
        done = self._queue.join(self.queueing.close_timeout_s if timeout_s is None else timeout_s)
        self._raise_failures(min_count=1)
        if not done:
            raise Undelivered("the time for flush is up while messages are still in flight; they are still sent")

    def close(self, timeout_s: float | None) -> None:
        """Send the queued messages until the time is up; the rest fails with ProducerClosed."""
        if self._queue.closed:
            return
        self._queue.close()
        self._thread.join(self.queueing.close_timeout_s if timeout_s is None else timeout_s)
        in_flight, waiting = self._queue.drain()
        _call(self.queueing.callbacks.on_close, [pending.message for pending in waiting])
        self.interrupt()
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
        linger_s = self.queueing.queue_time_ms / 1000
        try:
            while batch := self._queue.take(self.queueing.batch_size, linger_s):
                self._handle(batch)
        finally:
            self.release()

    def _handle(self, batch: Sequence[_Pending]) -> None:
        callbacks = self.queueing.callbacks
        messages = [pending.message for pending in batch]
        for message in messages:
            _call(callbacks.after_dequeue, message)
        _call(callbacks.before_send, messages)
        try:
            handler = self.queueing.handler
            outcomes = handler.handle(messages, self.dispatch) if handler else self.dispatch(messages)
            _check_outcomes(outcomes, len(messages))
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


def _check_outcomes(outcomes: Sequence[Outcome], count: int) -> None:
    if len(outcomes) != count or not all(isinstance(outcome, Delivered | Exception) for outcome in outcomes):
        raise TypeError(f"the event handler must return one outcome for each of {count} messages, not {outcomes!r}")


def _call(callback: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    """Call a user's callback; its errors are only logged."""
    try:
        callback(*args, **kwargs)
    except Exception:
        logger.exception("a callback of the producer failed")
