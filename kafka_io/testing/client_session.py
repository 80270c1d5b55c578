"""The connection of one client of an embedded broker: its own thread serves one request after the other."""

import contextlib
import logging
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kafka_io.errors import KafkaIOError

logger = logging.getLogger(__name__)

RequestT_co = TypeVar("RequestT_co", covariant=True)
RequestT = TypeVar("RequestT")


class RequestStream(Protocol[RequestT_co]):
    """Cuts the bytes from a client into requests."""

    def space(self) -> memoryview:
        """The buffer for the next bytes from the client."""

    def filled(self, count: int) -> RequestT_co | None:
        """Process `count` received bytes in `space()`. Returns the request that they complete, if any."""


@dataclass(frozen=True, eq=False)
class ClientSession(Generic[RequestT]):
    """Serves one socket until the client disconnects, violates the protocol, or sends a request that closes it.

    Args:
        client: the socket. `run` closes it.
        requests: cuts the received bytes into requests.
        serve: handles a request, and sends its answer if it has one. An error of it closes the connection.
        send_timeout_ms: a client that takes no byte for this long is closed.
    """

    client: socket.socket
    requests: RequestStream[RequestT]
    serve: Callable[[RequestT], None]
    send_timeout_ms: int

    def run(self) -> None:
        """Serve requests. The socket is closed on return."""
        with self.client:
            try:
                _prepare(self.client, self.send_timeout_ms)
                while count := self.client.recv_into(self.requests.space()):
                    request = self.requests.filled(count)
                    if request is not None:
                        self.serve(request)
            except (KafkaIOError, OSError) as error:
                # A broker refuses what it cannot answer by closing the connection [kafka-0.7: Errors].
                logger.info("connection closed: %s", error)

    def interrupt(self) -> None:
        """Make `run` return soon; called from another thread."""
        with contextlib.suppress(OSError):  # `run` has returned already
            self.client.shutdown(socket.SHUT_RDWR)


def _prepare(client: socket.socket, send_timeout_ms: int) -> None:
    """Set the timeouts: a client may be idle for ever, but it must take its answers, and a dead client is detected.

    The send timeout is set in the kernel. A timeout of Python's socket would make it non-blocking, and sendfile would
    become a busy loop.
    """
    seconds, rest_ms = divmod(send_timeout_ms, 1000)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", seconds, rest_ms * 1000))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
