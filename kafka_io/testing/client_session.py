"""The connection of one client of an embedded broker: one request after the other is answered."""

import socket
import struct
from collections.abc import Callable

from kafka_io.wire.framing import Frames


def serve_frames(
    client: socket.socket, frames: Frames, serve: Callable[[memoryview], None], *, send_timeout_ms: int
) -> None:
    """Serve one socket until the client disconnects, violates the protocol, or sends a request that closes it.

    Args:
        client: the socket.
        frames: cuts the received bytes into requests.
        serve: handles a request, and sends its answer if it has one. An error of it closes the connection.
        send_timeout_ms: a client that takes no byte for this long is closed.
    """
    _prepare(client, send_timeout_ms)
    while count := client.recv_into(frames.space()):
        frame = frames.filled(count)
        if frame is not None:
            serve(frame)


def _prepare(client: socket.socket, send_timeout_ms: int) -> None:
    """Set the timeouts: a client may be idle for ever, but it must take its answers, and a dead client is detected.

    The send timeout is set in the kernel. A timeout of Python's socket would make it non-blocking, and sendfile would
    become a busy loop.
    """
    seconds, rest_ms = divmod(send_timeout_ms, 1000)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", seconds, rest_ms * 1000))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
