"""Counts of what a producer sent, by topic and window of time, which it publishes to a counts topic.

A loader compares them with the rows of a table. A count is a running total of one window, producer and session, so a
reader takes the largest one: count messages that are sent twice, arrive late or are lost in between change nothing.
A session is one life of a producer. Its totals begin at 0, and the totals of all sessions are added up.
"""

import json
import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kafka_io.producer.callbacks import Dispatch, Outcome
from kafka_io.producer.message import Delivered, DeliveryFailure, Message, undelivered

logger = logging.getLogger(__name__)

HOUR_MS = 3_600_000
_MIN_WINDOW_MS = 1000
_MAX_WINDOWS = 1000
"""The maximum number of totals that a session keeps, once they are published. Clocks can name any number of windows."""

_Window = tuple[str, int]  # the topic, and the start of the window in ms since 1970


class AuditCounts:
    """Counts the confirmed messages of one producer, and publishes the totals; given to `open_producer`.

        >>> counts = AuditCounts("clicks-counts", producer="web-1")
        >>> with open_producer(bootstrap=bootstrap, audit=counts) as producer:
        ...     for time_ms in (3_600_000, 3_600_001):
        ...         _ = producer.send("clicks", b"one", timestamp_ms=time_ms)
        >>> [count] = map(json.loads, read("clicks-counts"))
        >>> count["topic"], count["window_start_ms"], count["window_ms"], count["producer"], count["count"]
        ('clicks', 3600000, 3600000, 'web-1', 2)

    A message belongs to the window of its `timestamp_ms`. A background thread publishes changed totals every
    `interval_s` seconds, and so do `flush` and `close` of the producer. What is not confirmed is published again with
    the next totals; `flush` and `close` raise Undelivered with these count messages.

    Args:
        topic: the counts topic.
        producer: a name for the producer, such as its host.
        window_ms: the length of the windows: an hour, or what divides an hour into equal parts, from a second on.
        interval_s: seconds between two publications. A producer that is killed loses the counts since the last one.

    Raises:
        ValueError: a value is not allowed.
    """

    def __init__(self, topic: str, *, producer: str, window_ms: int = HOUR_MS, interval_s: float = 60.0) -> None:
        if window_ms < _MIN_WINDOW_MS or HOUR_MS % window_ms or not producer or interval_s <= 0:
            raise ValueError(
                "window_ms must divide an hour and be at least 1000, interval_s must be positive, and the producer "
                f"needs a name: {window_ms}, {interval_s}, {producer!r}"
            )
        self.topic = topic
        self._producer, self._window_ms, self._interval_s = producer, window_ms, interval_s
        self._session = uuid.uuid4().hex
        self._totals: Counter[_Window] = Counter()
        self._published: dict[_Window, int] = {}
        self._failures: list[DeliveryFailure] = []
        self._lock = threading.Lock()
        self._publishing = threading.RLock()
        self._stopping = threading.Event()
        self._dispatch: Dispatch | None = None

    def counting(self, dispatch: Dispatch) -> Dispatch:
        """A function that sends messages with `dispatch` and counts those that are confirmed.

        Messages without a time get the time of sending here, because the broker must store the time that is counted.

        Raises:
            ValueError: this object counts for another producer already.
        """
        if self._dispatch is not None:
            raise ValueError("each producer needs AuditCounts of its own")
        self._dispatch = dispatch
        threading.Thread(target=self._publish_regularly, name="kafka-audit-counts", daemon=True).start()

        def send(messages: Sequence[Message]) -> list[Outcome]:
            now_ms = time.time_ns() // 1_000_000
            timed = [
                replace(message, timestamp_ms=now_ms) if message.timestamp_ms is None else message
                for message in messages
            ]
            outcomes = dispatch(timed)
            with self._lock:
                for message, outcome in zip(timed, outcomes, strict=True):
                    if isinstance(outcome, Delivered):
                        self._totals[self._window_of(message)] += 1
            return outcomes

        return send

    def _window_of(self, message: Message) -> _Window:
        assert message.timestamp_ms is not None
        return message.topic, message.timestamp_ms // self._window_ms * self._window_ms

    def publish(self) -> None:
        """Publish the totals that have changed since they were published; `check` says whether that failed."""
        assert self._dispatch is not None
        with self._publishing:
            with self._lock:
                due = {window: total for window, total in self._totals.items() if self._published.get(window) != total}
            messages = [self._message(window, total) for window, total in due.items()]
            try:
                outcomes = self._dispatch(messages) if messages else []
            except Exception as error:  # noqa: BLE001 - the thread must survive it, and `check` raises it
                outcomes = [error] * len(messages)
            self._keep(due, messages, outcomes)

    def check(self) -> None:
        """Raise an error if the last publication failed, once.

        Raises:
            Undelivered: the count messages that were not confirmed.
        """
        with self._lock:
            failures, self._failures = self._failures, []
        if failures:
            raise undelivered(failures)

    def close(self) -> None:
        """Publish the last totals. No more are published after this."""
        self._stopping.set()
        self.publish()

    def _publish_regularly(self) -> None:
        while not self._stopping.wait(self._interval_s):
            with self._publishing:
                if not self._stopping.is_set():
                    self.publish()

    def _keep(self, due: Mapping[_Window, int], messages: Sequence[Message], outcomes: Sequence[Outcome]) -> None:
        failures = []
        with self._lock:
            for (window, total), message, outcome in zip(due.items(), messages, outcomes, strict=True):
                if isinstance(outcome, Delivered):
                    self._published[window] = total
                else:
                    failures.append(DeliveryFailure(message=message, error=outcome))
            self._failures = failures
            if len(self._totals) > _MAX_WINDOWS and self._published == self._totals:
                # Totals that are forgotten must not begin at 0 again in the same session.
                self._session = uuid.uuid4().hex
                self._totals.clear()
                self._published.clear()
        if failures:
            logger.warning("%d counts were not published: %s", len(failures), failures[0].error)

    def _message(self, window: _Window, total: int) -> Message:
        topic, start_ms = window
        count = {
            "topic": topic,
            "window_start_ms": start_ms,
            "window_ms": self._window_ms,
            "producer": self._producer,
            "session": self._session,
            "count": total,
        }
        # With this key a compacted topic keeps the last total of each window.
        key = f"{topic}/{start_ms}/{self._producer}/{self._session}"
        return Message(topic=self.topic, value=json.dumps(count).encode(), key=key.encode())
