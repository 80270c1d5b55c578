"""One HTTP/1.1 request, GET or POST, on a connection of its own, with one deadline up to the last byte of the answer.

`http.client` parses the answer. Compression is not offered and redirects are not followed, so no answer can grow, and
no login is sent to another server.
"""

import io
import ssl
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any, Self, cast

from kafka_io.errors import ConnectionLost, Corrupt, KafkaIOError, printable, value_of
from kafka_io.net.deadline import Deadline
from kafka_io.net.http_address import HttpAddress
from kafka_io.net.http_login import HttpLogin
from kafka_io.net.security import Tls
from kafka_io.net.stream import Stream
from kafka_io.net.tls import tls_context

if TYPE_CHECKING:
    import socket

_MAX_REASON_BYTES = 64 * 1024  # of an answer that is not 200, which contains only the reason
_OK = 200
_REGISTRY_ANSWERS = "application/vnd.schemaregistry.v1+json, application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServer:
    """The address of a server, and how to log in there.

    Args:
        address: the parts of its URL.
        tls: the TLS context; None for plain text.
        login: the login that each request contains.
    """

    address: HttpAddress
    tls: ssl.SSLContext | None = None
    login: HttpLogin | None = None

    @classmethod
    def at(cls, address: HttpAddress, tls: Tls | None, login: HttpLogin | None) -> Self:
        """The server of a URL; `tls` are the settings for `https`. Raises the errors of `tls_context`."""
        context = tls_context(tls or Tls()) if address.uses_tls else None
        return cls(address=address, tls=context, login=login)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """The answer to a request. The body of an answer with another status than 200 can be cut short.

    Args:
        status: the status code.
        body: the bytes of the body. They are not printed: they may repeat the login.
        retry_after_s: the seconds that the server asks to wait; 0 if it does not.
    """

    status: int
    body: bytes = field(repr=False)
    retry_after_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpContent:
    """What a POST sends. It is not a secret: secrets are in the login."""

    media_type: str
    data: bytes


def http_exchange(
    server: HttpServer, path: str, content: HttpContent | None = None, *, timeout_s: float, max_bytes: int
) -> HttpAnswer:
    """Send a request on a new connection, and return the answer.

    Args:
        server: the server to ask.
        path: the path with its query, encoded for a URL.
        content: what a POST sends; without it the request is a GET.
        timeout_s: the limit of the whole exchange.
        max_bytes: the largest body of an answer with status 200.

    Raises:
        NetworkError: the server cannot be reached, closed the connection, or is too slow.
        TlsFailed: the server did not prove its identity, or refuses us.
        Corrupt: the answer is not HTTP, or is too large.
    """
    return value_of(_answer_or_error(server, path, content, Deadline.after(timeout_s), max_bytes))


def _answer_or_error(
    server: HttpServer, path: str, content: HttpContent | None, deadline: Deadline, max_bytes: int
) -> HttpAnswer | KafkaIOError:
    """The answer. An error after a login is a new one without a cause: stack frames can contain the login."""
    try:
        with closing(Stream.connect(server.address.host, server.address.port, deadline, server.tls)) as stream:
            with suppress(ConnectionLost):  # a server can refuse a request that it has not read; its answer says why
                stream.send(_request(server, path, content), deadline)
            return _received(stream, "POST" if content else "GET", deadline, max_bytes)
    except KafkaIOError as error:
        if server.login is None:
            return error
        return type(error)(server.login.masked(error.reason), error.where)


def _request(server: HttpServer, path: str, content: HttpContent | None) -> bytes:
    host = f"[{server.address.host}]" if ":" in server.address.host else server.address.host
    lines = [
        f"{'POST' if content else 'GET'} {path} HTTP/1.1",
        f"Host: {host}:{server.address.port}",
        f"Accept: {'application/json' if content else _REGISTRY_ANSWERS}",
        "Accept-Encoding: identity",
        "Connection: close",
        "User-Agent: penstock",
    ]
    if content:
        lines += [f"Content-Type: {content.media_type}", f"Content-Length: {len(content.data)}"]
    login = b"" if server.login is None else server.login.header()
    head = "".join(f"{line}\r\n" for line in lines).encode("ascii")
    return head + login + b"\r\n" + (content.data if content else b"")


class _ReceivedBytes(io.RawIOBase):
    """The bytes of a stream as http.client reads them: from the file of a socket."""

    def __init__(self, stream: Stream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline
        self.end_is_allowed = False

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The file. http.client asks the socket for it."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, space: Any) -> int:
        """Wait for bytes. The end of the connection is an error, unless it is the end of the body."""
        try:
            return self._stream.receive_into(memoryview(space), self._deadline)
        except ConnectionLost:
            if not self.end_is_allowed:
                raise
            return 0


def _received(stream: Stream, method: str, deadline: Deadline, max_bytes: int) -> HttpAnswer:
    received = _ReceivedBytes(stream, deadline)
    try:
        with closing(HTTPResponse(cast("socket.socket", received), method=method)) as response:
            response.begin()
            # A body without a length ends with the connection. A cut one is no JSON, so it is noticed later.
            received.end_is_allowed = response.length is None and not response.chunked
            body = _body(response, max_bytes)
            wait = response.getheader("Retry-After", "")
    except HTTPException as error:
        raise Corrupt(f"the answer is not HTTP: {type(error).__name__} {printable(error)}") from error
    return HttpAnswer(status=response.status, body=body, retry_after_s=float(wait) if _is_seconds(wait) else 0.0)


def _body(response: HTTPResponse, max_bytes: int) -> bytes:
    if response.status != _OK:
        return response.read(_MAX_REASON_BYTES)
    body = b"" if (response.length or 0) > max_bytes else response.read(max_bytes + 1)
    if len(body) > max_bytes or (response.length or 0) > max_bytes:
        raise Corrupt(f"the answer is larger than {max_bytes:,} bytes")
    return body


def _is_seconds(text: str) -> bool:
    """Whether the value of Retry-After is a number of seconds. It can also be a date, which is not used."""
    return text.isascii() and text.isdigit() and len(text) < 10
