"""Servers that the tests of a unit share (see spreading.py). They end with their unit, because idle servers cost time.

A broker without work needs 2 % of a core, a browser or a daemon of Dagster 5 %: for half an hour that is more than to
start it again.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, TypeVar

Server = TypeVar("Server")


class UnitServers:
    """The running servers of the current unit."""

    def __init__(self) -> None:
        self._running = ExitStack()
        self._servers: dict[str, Any] = {}

    def shared(self, name: str, start: Callable[[], AbstractContextManager[Server]]) -> Server:
        """The server of this name, which the first test that asks for it starts."""
        if name not in self._servers:
            self._servers[name] = self._running.enter_context(start())
        server: Server = self._servers[name]
        return server

    def end(self) -> None:
        """End all servers."""
        self._servers.clear()
        self._running.close()


UNIT_SERVERS = UnitServers()
