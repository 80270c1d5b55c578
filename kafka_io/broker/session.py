"""One client's connection: requests are served one after the other, so answers go out in the order of requests."""

import contextlib
import logging
import socket
import struct
from collections.abc import Callable
from typing import Any

from kafka_io.broker.fetch import fetch, multifetch
from kafka_io.broker.logs import Logs
from kafka_io.broker.offsets import offsets
from kafka_io.broker.produce import multiproduce, produce
from kafka_io.broker.reply import Reply, send
from kafka_io.errors import KafkaIOError
from kafka_io.v07.conversation import ServerConversation
from kafka_io.v07.messages import AnyRequest, Fetch, MultiFetch, MultiProduce, Offsets, Produce

logger = logging.getLogger(__name__)

APIS: dict[type[AnyRequest], Callable[[Any, Logs], Reply]] = {
    Produce: produce,
    Fetch: fetch,
    MultiFetch: multifetch,
    MultiProduce: multiproduce,
    Offsets: offsets,
}


class Session:
    """Serves one socket until the client leaves, breaks the protocol, or asks for what closes it."""

    def __init__(self, client: socket.socket, logs: Logs) -> None:
        self._client = client
        self._logs = logs
        self._conversation = ServerConversation(logs.config.max_request_bytes)

    def run(self) -> None:
        """Serve; the socket is closed when this returns."""
        with self._client:
            try:
                _prepare(self._client, self._logs.config.send_timeout_ms)
                while self._step():
                    pass
            except (KafkaIOError, OSError) as error:
                # No answer goes out: closing is how a 0.7 broker says no (facts, 3).
                logger.info("connection closed: %s", error)

    def interrupt(self) -> None:
        """Make `run` return soon, from another thread."""
        with contextlib.suppress(OSError):  # it has returned already
            self._client.shutdown(socket.SHUT_RDWR)

    def _step(self) -> bool:
        """Take what has arrived, serve the request it completes; False at the end of the stream."""
        count = self._client.recv_into(self._conversation.space())
        request = self._conversation.filled(count) if count else None
        if request is not None:
            send(self._client, APIS[type(request)](request, self._logs))
        return count > 0


def _prepare(client: socket.socket, send_timeout_ms: int) -> None:
    """A client may be idle for ever, but not slow in taking what it asked for; a dead one is found out.

    The timeout is the kernel's, not Python's: that would make the socket non-blocking, and sendfile spin.
    """
    seconds, rest_ms = divmod(send_timeout_ms, 1000)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", seconds, rest_ms * 1000))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
