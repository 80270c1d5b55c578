"""A gate in embedded brokers that delays the fetches of loads, so that a test can interrupt a load in the middle."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from kafka_io.messages.fetch import BY_ID_SINCE, FetchRequest, FetchResponse
from kafka_io.testing.modern import handlers
from kafka_io.testing.modern.apis.fetch import fetch
from kafka_io.testing.modern.node import BrokerNode, Caller

_TIMEOUT_S = 300
_MIN_LOAD_FETCH_BYTES = 1024 * 1024
"""A load requests at least so many bytes of a partition. Requests for the time of a record are smaller."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Holds the fetches of loads of some topics, in all brokers from 0.8 on in this process. Other fetches pass."""

    held_topics: set[str] = field(default_factory=set)
    waiting_topics: list[str] = field(default_factory=list)
    """The topics of the fetches that had to wait since `holding` began."""
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def holding(self, *topics: str) -> Iterator[None]:
        """Hold these topics for the length of a `with` block."""
        with self._changed:
            self.held_topics.update(topics)
            self.waiting_topics.clear()
        try:
            yield
        finally:
            with self._changed:
                self.held_topics.difference_update(topics)
                self._changed.notify_all()

    def answer(self, request: FetchRequest, node: BrokerNode, caller: Caller) -> FetchResponse:
        """Handle a fetch in place of the broker's own handler."""
        by_name = caller.version < BY_ID_SINCE
        requested = {
            topic.topic if by_name else node.topics.find(None, topic.topic_id).name
            for topic in request.topics
            if any(part.partition_max_bytes >= _MIN_LOAD_FETCH_BYTES for part in topic.partitions)
        }
        with self._changed:
            self.waiting_topics.extend(requested & self.held_topics)
            self._changed.wait_for(lambda: not requested & self.held_topics, _TIMEOUT_S)
        return fetch(request, node, caller)


@contextmanager
def gate() -> Iterator[Gate]:
    """Put an open gate before all brokers for the length of a `with` block."""
    new_gate = Gate()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(handlers.HANDLERS, FetchRequest, new_gate.answer)
        yield new_gate
