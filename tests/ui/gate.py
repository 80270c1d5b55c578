"""A gate for the fetches of loads in embedded brokers: a test can stop loads in the middle."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from kafka_io.messages.fetch import BY_ID_SINCE, FetchRequest, FetchResponse
from kafka_io.testing.modern import handlers as dialect
from kafka_io.testing.modern.apis.fetch import fetch
from kafka_io.testing.modern.node import BrokerNode, Caller

_PATIENCE_S = 300
_OF_LOADS_BYTES = 1024 * 1024
"""The smallest fetch of a load for a partition. Requests for the time of a record are smaller."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Holds the loads of some topics, in all brokers from 0.8 on in this process. Other loads pass."""

    held: set[str] = field(default_factory=set)
    came: list[str] = field(default_factory=list)
    """The topics of the fetches that had to wait."""
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def holding(self, *topics: str) -> Iterator[None]:
        """Hold these topics for the length of a `with` block."""
        with self._changed:
            self.held.update(topics)
            self.came.clear()
        try:
            yield
        finally:
            with self._changed:
                self.held.difference_update(topics)
                self._changed.notify_all()

    def answer(self, request: FetchRequest, node: BrokerNode, caller: Caller) -> FetchResponse:
        """Handle a fetch in place of the broker's own handler."""
        by_name = caller.version < BY_ID_SINCE
        requested = {
            topic.topic if by_name else node.topics.find(None, topic.topic_id).name
            for topic in request.topics
            if any(part.partition_max_bytes >= _OF_LOADS_BYTES for part in topic.partitions)
        }
        with self._changed:
            self.came.extend(requested & self.held)
            self._changed.wait_for(lambda: not requested & self.held, _PATIENCE_S)
        return fetch(request, node, caller)


@contextmanager
def gate() -> Iterator[Gate]:
    """An open gate, for the length of a `with` block."""
    new_gate = Gate()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(dialect.HANDLERS, FetchRequest, new_gate.answer)
        yield new_gate
