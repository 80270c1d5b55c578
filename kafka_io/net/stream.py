"""A stream of bytes, plain or TLS, whose every call has a deadline.

The errors of the operating system are mapped here and in tls.py, and nowhere else.
"""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from kafka_io.errors import ConnectFailed, ConnectionLost, DeadlineExceeded, NetworkError, TlsFailed
from kafka_io.net.deadline import Deadline
from kafka_io.net.tls import handshake, is_alert, refusal


class Stream:
    """An open connection. It cannot be pickled and belongs to one thread (S09)."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._held = b""
        self._heard = isinstance(connected, ssl.SSLSocket)  # what a plain stream hears first tells more

    @classmethod
    def connect(cls, host: str, port: int, deadline: Deadline, tls: ssl.SSLContext | None = None) -> Self:
        """Connect to the first address of `host` that answers. None may use up the time of those after it (W01, W17).

        With `tls` (see tls_context) the other side has proven to be `host`.

        Raises:
            ConnectFailed: none did; each refusal is in the sentence.
            TlsFailed: the one that did has not proven to be `host`, or refuses us; no other is tried then.
        """
        addresses = _addresses(host, port)
        refusals = []
        for tried, (family, _, _, _, address) in enumerate(addresses):
            try:
                share = Deadline.after(deadline.left() / (len(addresses) - tried), deadline.clock)
                connected = _connected(family, address, share)
                return cls(connected if tls is None else handshake(connected, host, tls, share))
            except (OSError, NetworkError) as error:
                refusals.append(f"{address[0]}: {error}")
        raise ConnectFailed(f"cannot connect to port {port} ({'; '.join(refusals)})")

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Put all of `data` on the wire.

        Raises:
            ConnectionLost: the other side is gone.
            DeadlineExceeded: it did not take all of it in time.
        """
        rest = memoryview(data)
        while rest:  # not `sendall`: with TLS it would give each 16 KiB the whole time
            with self._mapped(deadline.left()):
                rest = rest[self._socket.send(rest) :]

    def receive_into(self, space: memoryview, deadline: Deadline) -> int:
        """Wait for bytes and write them into `space`; how many, at least one.

        Raises:
            ConnectionLost: the other side closed.
            DeadlineExceeded: nothing came.
            TlsFailed: the broker speaks TLS and we do not (W16), or it refuses our certificate.
        """
        if self._held:
            space[:1], self._held = self._held, b""
            return 1
        with self._mapped(deadline.left()):
            count = self._socket.recv_into(space)
        if not self._heard:
            _check_first(space[:count])
            self._heard = True
        return _some(count)

    def has_unread(self) -> bool:
        """Whether bytes lie there that nobody has taken; it does not wait for any.

        Raises:
            ConnectionLost: the other side closed.
        """
        # A byte is taken and held: TLS has no peeking, and what lies there may be no data at all but a session ticket.
        if not self._held:
            with self._mapped(0):
                try:
                    self._held = self._socket.recv(1)
                except (BlockingIOError, ssl.SSLWantReadError):
                    return False
                _some(len(self._held))
        return True

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
            raise refusal(error) or ConnectionLost(f"the connection broke: {error}") from error


def _check_first(answer: memoryview) -> None:
    """A TLS port answers plain text with an alert, or not at all; one that wants SASL also does the latter."""
    if is_alert(answer):
        raise TlsFailed("this port speaks TLS, and no `tls` is set for the cluster")
    if not answer:
        raise ConnectionLost("the broker closed the connection without an answer; does this port want TLS or SASL?")


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


def _connected(family: int, address: Any, deadline: Deadline) -> socket.socket:
    connecting = socket.socket(family, socket.SOCK_STREAM)
    try:
        # SO_RCVBUF is left alone: to set it ends the kernel's own tuning, and most kernels cap it at 208 KiB.
        connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connecting.settimeout(deadline.left())
        connecting.connect(address)
    except BaseException:
        connecting.close()
        raise
    return connecting
