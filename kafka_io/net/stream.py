"""A byte stream over TCP, plain or with TLS. Every call has a deadline.

This module and tls.py alone map errors of the operating system to ours.
"""

import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, Self

from kafka_io.closing import closed_on_error
from kafka_io.errors import (
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    NetworkError,
    TlsFailed,
    printable,
    system_reason,
)
from kafka_io.net.deadline import Deadline
from kafka_io.net.tls import TLS_HERE, client_hello, handshake, is_alert, is_handshake, refusal

_MAX_PORT = 65_535


class Stream:
    """An open connection. It cannot be pickled and belongs to one thread (fault S09)."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._kept_byte = b""
        # The first bytes of a plain stream can show that the port speaks TLS.
        self._first_checked = isinstance(connected, ssl.SSLSocket)

    @classmethod
    def connect(cls, host: str, port: int, deadline: Deadline, tls: ssl.SSLContext | None = None) -> Self:
        """Connect to the first address of `host` that answers (faults W01, W17).

        Each address gets an equal share of the remaining time, so a silent one leaves time for the others. With `tls`
        (see tls_context) the other side has proven that it is `host`.

        Raises:
            ConnectFailed: no address answered; the message contains the reason of each.
            TlsFailed: the first that answered did not prove that it is `host`, or refuses us. No other is tried.
        """
        addresses = _addresses(host, port)
        reasons, cause = [], None
        for tried, (family, _, _, _, address) in enumerate(addresses):
            try:
                share = Deadline.after(deadline.remaining_s() / (len(addresses) - tried))
                connected = _connected(family, address, share)
                return cls(connected if tls is None else handshake(connected, host, tls, share))
            except (OSError, NetworkError) as error:
                reason = system_reason(error) if isinstance(error, OSError) else error.reason
                reasons.append(f"{address[0]}: {reason}")
                cause = error
        raise ConnectFailed(f"cannot connect to port {port} ({'; '.join(reasons)})") from cause

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Send all of `data`.

        Raises:
            ConnectionLost: the other side closed the connection.
            DeadlineExceeded: the other side did not take all bytes in time.
        """
        unsent = memoryview(data)
        while unsent:  # `sendall` is not used: with TLS it gives each 16 KiB the whole timeout
            with self._mapped(deadline.remaining_s()):
                unsent = unsent[self._socket.send(unsent) :]

    def receive_into(self, space: memoryview, deadline: Deadline) -> int:
        """Wait for bytes and write them into `space`. Returns their number, at least 1.

        Raises:
            ConnectionLost: the other side closed the connection.
            DeadlineExceeded: no byte arrived in time.
            TlsFailed: the port speaks TLS and this stream does not (fault W16), or the broker refuses our certificate.
        """
        if self._kept_byte:
            space[:1], self._kept_byte = self._kept_byte, b""
            return 1
        with self._mapped(deadline.remaining_s()):
            count = self._socket.recv_into(space)
        if not self._first_checked:
            _check_first(space[:count])
            self._first_checked = True
        return _not_closed(count)

    def has_unread(self) -> bool:
        """Whether bytes have arrived that nobody has received yet. It does not wait.

        Raises:
            ConnectionLost: the other side closed the connection.
        """
        # TLS cannot peek, and what has arrived may be a session ticket without data. So one byte is received and kept.
        if not self._kept_byte:
            with self._mapped(0):
                try:
                    self._kept_byte = self._socket.recv(1)
                except (BlockingIOError, ssl.SSLWantReadError):
                    return False
                _not_closed(len(self._kept_byte))
        return True

    def close(self) -> None:
        """Close the connection. Calling it again does nothing."""
        self._socket.close()

    @contextmanager
    def _mapped(self, timeout_s: float) -> Iterator[None]:
        try:
            self._socket.settimeout(timeout_s)
            yield
        except TimeoutError as error:
            raise DeadlineExceeded("the answer was not complete before its deadline") from error
        except OSError as error:
            raise refusal(error) or ConnectionLost(f"the connection broke: {system_reason(error)}") from error


def _check_first(answer: memoryview) -> None:
    """Check the first bytes: a TLS port answers plain text with an alert or closes, and a SASL port closes."""
    if is_alert(answer):
        raise TlsFailed(TLS_HERE)
    if not answer:
        raise ConnectionLost("the server closed the connection without an answer; does this port require TLS or SASL?")


def check_no_tls(host: str, port: int, deadline: Deadline) -> None:
    """Check that a server which closed a plain connection does not speak TLS; a server that is gone passes (fault F03).

    Raises:
        TlsFailed: it answers the first bytes of a client of TLS as a server of TLS does.
    """
    with suppress(NetworkError), closing(Stream.connect(host, port, deadline)) as stream:
        stream.send(client_hello(), deadline)
        answer = memoryview(bytearray(8))
        if is_handshake(answer[: stream.receive_into(answer, deadline)]):
            raise TlsFailed(TLS_HERE)


def _not_closed(count: int) -> int:
    if count == 0:
        raise ConnectionLost("the server closed the connection")
    return count


def _addresses(host: str, port: int) -> list[Any]:
    """The addresses of `host`. The system sets the time limit of the look-up, because getaddrinfo takes none."""
    if not 0 < port <= _MAX_PORT:
        raise ConnectFailed(f"the broker advertises port {port}, which does not exist")
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConnectFailed(f"the host name {printable(host)} has no address: {system_reason(error)}") from error
    except ValueError as error:
        raise ConnectFailed(f"{printable(host)} cannot be a host name") from error


def _connected(family: int, address: Any, deadline: Deadline) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    with closed_on_error(connection):
        # SO_RCVBUF is not set: that would end the tuning by the kernel, and most kernels limit it to 208 KiB.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(deadline.remaining_s())
        connection.connect(address)
    return connection
