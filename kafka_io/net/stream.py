"""A TCP stream whose every call has a deadline. The errors of the operating system are mapped here and nowhere else."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from kafka_io.errors import ConnectFailed, ConnectionLost, DeadlineExceeded
from kafka_io.net.deadline import Deadline


class Stream:
    """An open TCP connection. It cannot be pickled and belongs to one thread (S09)."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    @classmethod
    def connect(cls, host: str, port: int, deadline: Deadline) -> Self:
        """Connect to the first address of `host` that answers. None may use up the time of those after it (W01, W17).

        Raises:
            ConnectFailed: none did; each refusal is in the sentence.
        """
        addresses = _addresses(host, port)
        refusals = []
        for tried, (family, _, _, _, address) in enumerate(addresses):
            try:
                return cls(_connected(family, address, deadline.left() / (len(addresses) - tried)))
            except (OSError, DeadlineExceeded) as error:
                refusals.append(f"{address[0]}: {error}")
        raise ConnectFailed(f"cannot connect to port {port} ({'; '.join(refusals)})")

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Put all of `data` on the wire.

        Raises:
            ConnectionLost: the other side is gone.
            DeadlineExceeded: it did not take all of it in time.
        """
        with self._mapped(deadline.left()):
            self._socket.sendall(data)

    def receive_into(self, space: memoryview, deadline: Deadline) -> int:
        """Wait for bytes and write them into `space`; how many, at least one.

        Raises:
            ConnectionLost: the other side closed.
            DeadlineExceeded: nothing came.
        """
        with self._mapped(deadline.left()):
            return _some(self._socket.recv_into(space))

    def has_unread(self) -> bool:
        """Whether bytes lie there that nobody has taken; it does not wait for any.

        Raises:
            ConnectionLost: the other side closed.
        """
        with self._mapped(0):
            try:
                return _some(len(self._socket.recv(1, socket.MSG_PEEK))) > 0
            except BlockingIOError:
                return False

    def close(self) -> None:
        """End the connection; safe to call again."""
        self._socket.close()

    @contextmanager
    def _mapped(self, timeout_s: float) -> Iterator[None]:
        try:
            self._socket.settimeout(timeout_s)
            yield
        except TimeoutError as error:
            raise DeadlineExceeded("no whole answer before its deadline") from error
        except OSError as error:
            raise ConnectionLost(f"the connection broke: {error}") from error


def _some(count: int) -> int:
    if count == 0:
        raise ConnectionLost("the broker closed the connection")
    return count


def _addresses(host: str, port: int) -> list[Any]:
    """What the name service says of `host`; its time limit is the system's own, for it takes none."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # ValueError: no name can look like this
        raise ConnectFailed(f"the host name {host!r} has no address: {error}") from error


def _connected(family: int, address: Any, timeout_s: float) -> socket.socket:
    connecting = socket.socket(family, socket.SOCK_STREAM)
    try:
        # SO_RCVBUF is left alone: to set it ends the kernel's own tuning, and most kernels cap it at 208 KiB.
        connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connecting.settimeout(timeout_s)
        connecting.connect(address)
    except BaseException:
        connecting.close()
        raise
    return connecting
