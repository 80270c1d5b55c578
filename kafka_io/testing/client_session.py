"""The connection of one client of an embedded broker: its own thread serves one request after the other."""

import contextlib
import logging
import socket
import struct
from abc import ABC, abstractmethod

from kafka_io.errors import KafkaIOError

logger = logging.getLogger(__name__)


class ClientSession(ABC):
    """Serves one socket until the client disconnects, violates the protocol, or sends a request that closes it."""

    def __init__(self, client: socket.socket, *, send_timeout_ms: int) -> None:
        self._client = client
        self._send_timeout_ms = send_timeout_ms

    def run(self) -> None:
        """Serve requests. The socket is closed on return."""
        with self._client:
            try:
                _prepare(self._client, self._send_timeout_ms)
                while self._step():
                    pass
            except (KafkaIOError, OSError) as error:
                # A broker refuses what it cannot answer by closing the connection [kafka-0.7: Errors].
                logger.info("connection closed: %s", error)

    def interrupt(self) -> None:
        """Make `run` return soon; called from another thread."""
        with contextlib.suppress(OSError):  # `run` has returned already
            self._client.shutdown(socket.SHUT_RDWR)

    @abstractmethod
    def _step(self) -> bool:
        """Receive what has arrived and serve the request that it completes. Returns False at the end of the stream."""


def _prepare(client: socket.socket, send_timeout_ms: int) -> None:
    """Set the timeouts: a client may be idle for ever, but it must take its answers, and a dead client is detected.

    The send timeout is set in the kernel. A timeout of Python's socket would make it non-blocking, and sendfile would
    become a busy loop.
    """
    seconds, rest_ms = divmod(send_timeout_ms, 1000)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", seconds, rest_ms * 1000))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
