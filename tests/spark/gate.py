"""A gate that delays the fetches of the brokers in this process."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from kafka_io.messages.fetch import FetchRequest, FetchResponse
from kafka_io.testing.modern.apis.fetch import fetch
from kafka_io.testing.modern.handlers import HANDLERS
from kafka_io.testing.modern.node import BrokerNode, Caller

Holds = Callable[[int, int], bool]
"""Takes a partition and an offset; returns whether a fetch from there waits."""

_TIMEOUT_S = 180.0


class Gate:
    """While the gate is closed, fetches wait. Clients have a timeout, so close it for a short time only."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holds: Holds | None = None
        self._waiting = 0

    def close(self, holds: Holds = lambda _partition, _offset: True) -> None:
        """Close the gate for the fetches that `holds` selects. By default it selects all."""
        with self._changed:
            self._holds, self._waiting = holds, 0

    def open(self) -> None:
        """Let all fetches continue."""
        with self._changed:
            self._holds = None
            self._changed.notify_all()

    def wait_for_fetches(self, count: int) -> None:
        """Wait until this many fetches wait at the closed gate."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._waiting >= count, _TIMEOUT_S), (
                f"only {self._waiting} of {count} fetches arrived at the gate"
            )

    def fetch(self, request: FetchRequest, node: BrokerNode, caller: Caller) -> FetchResponse:
        """Handle a fetch in place of the broker's own handler."""
        with self._changed:
            if self._is_held(request):
                self._waiting += 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._is_held(request), _TIMEOUT_S)
        return fetch(request, node, caller)

    def _is_held(self, request: FetchRequest) -> bool:
        requested = [partition for topic in request.topics for partition in topic.partitions]
        return self._holds is not None and any(self._holds(fetch.partition, fetch.fetch_offset) for fetch in requested)


@contextmanager
def gated() -> Iterator[Gate]:
    """Put an open gate before all modern brokers of this process. It is removed at the end of the `with` block."""
    gate = Gate()
    with patch.dict(HANDLERS, {FetchRequest: gate.fetch}):
        try:
            yield gate
        finally:
            gate.open()
