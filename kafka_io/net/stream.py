"""A TCP stream whose every call has a deadline. The errors of the operating system are mapped here and nowhere else."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from kafka_io.errors import ConnectFailed, ConnectionLost, DeadlineExceeded
from kafka_io.net.deadline import Deadline

_RECEIVE_BUFFER = 4 * 1024 * 1024


class Stream:
    """An open TCP connection. It cannot be pickled and belongs to one thread (S09)."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    @classmethod
    def connect(cls, host: str, port: int, deadline: Deadline) -> Self:
        """Connect to the first address of `host` that answers (W01, W17).

        Raises:
            ConnectFailed: none did, each refusal is in the sentence.
        """
        refusals = []
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise ConnectFailed(f"the host name {host!r} has no address: {error}") from error
        for family, kind, protocol, _, address in addresses:
            connecting = socket.socket(family, kind, protocol)
            try:
                connecting.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
                connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connecting.settimeout(deadline.left())
                connecting.connect(address)
            except (OSError, DeadlineExceeded) as error:
                connecting.close()
                refusals.append(f"{address[0]}: {error}")
            else:
                return cls(connecting)
        raise ConnectFailed(f"cannot connect to port {port} ({'; '.join(refusals)})")

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Put all of `data` on the wire."""
        with self._mapped(deadline):
            self._socket.sendall(data)

    def receive_into(self, space: memoryview, deadline: Deadline) -> int:
        """Wait for bytes and write them into `space`; how many, at least one.

        Raises:
            ConnectionLost: the other side closed.
            DeadlineExceeded: nothing came.
        """
        with self._mapped(deadline):
            count = self._socket.recv_into(space)
        if count == 0:
            raise ConnectionLost("the broker closed the connection")
        return count

    def close(self) -> None:
        """End the connection; safe to call again."""
        self._socket.close()

    @contextmanager
    def _mapped(self, deadline: Deadline) -> Iterator[None]:
        self._socket.settimeout(deadline.left())
        try:
            yield
        except TimeoutError as error:
            raise DeadlineExceeded("no whole answer before its deadline") from error
        except OSError as error:
            raise ConnectionLost(f"the connection broke: {error}") from error
