"""Faults of an embedded registry, for tests: a fault receives the correct reply and sends something else, or nothing.

registry.inject(fault, path="/schemas/ids/7", times=2)
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass

from kafka_io.testing.schema_registry.replies import RegistryReply


@dataclass(frozen=True, slots=True)
class Client:
    """The client of one request: `send` sends it bytes, and `stopping` is set when the registry stops."""

    send: Callable[[bytes], object]
    stopping: threading.Event


Fault = Callable[[RegistryReply, Client], object]
"""Sends something else than the reply, or nothing."""


def honest(reply: RegistryReply, client: Client) -> None:
    """No fault: send the reply."""
    client.send(reply.encode())


@dataclass(slots=True)
class _Injected:
    fault: Fault
    path: re.Pattern[str]
    times: int | None


class Faults:
    """The faults that wait for a request. Any number of threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._injected: list[_Injected] = []

    def inject(self, fault: Fault, *, path: str = r".*", times: int | None = 1) -> None:
        """Use `fault` for the next requests whose whole path matches; None means all of them."""
        with self._lock:
            self._injected.append(_Injected(fault, re.compile(path), times))

    def next(self, path: str) -> Fault:
        """The fault for a request: the oldest that matches."""
        with self._lock:
            for injected in self._injected:
                if injected.path.fullmatch(path) and injected.times != 0:
                    injected.times = None if injected.times is None else injected.times - 1
                    return injected.fault
        return honest
