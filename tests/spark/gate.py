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

_LONGEST_S = 180.0


class Gate:
    """While the gate is closed, fetches wait. Clients have a timeout, so close it for a short time only."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holds: Holds | None = None
        self._held = 0

    def close(self, holds: Holds = lambda _partition, _offset: True) -> None:
        """From now on, hold the fetches that `holds` selects."""
        with self._changed:
            self._holds, self._held = holds, 0

    def open(self) -> None:
        """Let all fetches continue."""
        with self._changed:
            self._holds = None
            self._changed.notify_all()

    def await_held(self, count: int) -> None:
        """Wait until this many fetches wait at the closed gate."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._held >= count, _LONGEST_S), f"{self._held} fetches came"

    def fetch(self, request: FetchRequest, node: BrokerNode, caller: Caller) -> FetchResponse:
        """The handler of fetches in the brokers."""
        with self._changed:
            if self._is_held(request):
                self._held += 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._is_held(request), _LONGEST_S)
        return fetch(request, node, caller)

    def _is_held(self, request: FetchRequest) -> bool:
        requested = [partition for topic in request.topics for partition in topic.partitions]
        return self._holds is not None and any(self._holds(fetch.partition, fetch.fetch_offset) for fetch in requested)


@contextmanager
def gated() -> Iterator[Gate]:
    """An open gate for the modern brokers of this process. At the end of the `with` block it is open again."""
    gate = Gate()
    with patch.dict(HANDLERS, {FetchRequest: gate.fetch}):
        try:
            yield gate
        finally:
            gate.open()
