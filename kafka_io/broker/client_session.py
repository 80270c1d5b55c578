"""One client's connection, whatever it speaks: requests are served one after the other, on a thread of its own."""

import contextlib
import logging
import socket
import struct
from abc import ABC, abstractmethod

from kafka_io.errors import KafkaIOError

logger = logging.getLogger(__name__)


class ClientSession(ABC):
    """Serves one socket until the client leaves, breaks the protocol, or asks for what closes it."""

    def __init__(self, client: socket.socket, *, send_timeout_ms: int) -> None:
        self._client = client
        self._send_timeout_ms = send_timeout_ms

    def run(self) -> None:
        """Serve; the socket is closed when this returns."""
        with self._client:
            try:
                _prepare(self._client, self._send_timeout_ms)
                while self._step():
                    pass
            except (KafkaIOError, OSError) as error:
                # No answer goes out: closing is how a broker refuses what it cannot answer (facts, 3).
                logger.info("connection closed: %s", error)

    def interrupt(self) -> None:
        """Make `run` return soon, from another thread."""
        with contextlib.suppress(OSError):  # it has returned already
            self._client.shutdown(socket.SHUT_RDWR)

    @abstractmethod
    def _step(self) -> bool:
        """Take what has arrived, serve the request it completes; False at the end of the stream."""


def _prepare(client: socket.socket, send_timeout_ms: int) -> None:
    """A client may be idle for ever, but not slow in taking what it asked for; a dead one is found out.

    The timeout is the kernel's, not Python's: that would make the socket non-blocking, and sendfile spin.
    """
    seconds, rest_ms = divmod(send_timeout_ms, 1000)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", seconds, rest_ms * 1000))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
