"""TLS: the requirements for brokers, and the handshake on an open connection."""

import errno
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from kafka_io.closing import closed_on_error
from kafka_io.errors import ConnectionLost, DeadlineExceeded, KafkaIOError, TlsFailed, system_reason
from kafka_io.net.deadline import Deadline
from kafka_io.net.security import Tls

# A TLS alert: type 21, version 3.x, length 2. Read as the size of a Kafka frame it would mean 352 MB (fault W16).
_ALERT = re.compile(rb"\x15\x03[\x00-\x04]\x00")
_HANDSHAKE = b"\x16\x03"  # the first bytes of a server's answer to `client_hello`
NO_TLS_HERE = "this port does not speak TLS: give the port of a TLS listener, or remove `tls` from the settings"
TLS_HERE = "this port speaks TLS: set `tls = true` in the `security` of the cluster, or write https:// in a URL"
_ABOUT_OUR_CERTIFICATE = re.compile("ALERT.*(CERTIFICATE|UNKNOWN_CA)")
_SENTENCES = {
    "WRONG_VERSION_NUMBER": NO_TLS_HERE,
    "UNSUPPORTED_PROTOCOL": "the server does not support TLS 1.2 or newer",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the server does not support TLS 1.2 or newer",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the server refuses the handshake; it may require a client certificate",
}


def tls_context(tls: Tls) -> ssl.SSLContext:
    """The TLS context for connections. Files and secrets are read now; any number of threads may use the result.

    Raises:
        TlsFailed: a file is missing or has the wrong content.
        SecretMissing: the password of the key is missing.
    """
    # create_default_context is not used: it writes session keys to a file if SSLKEYLOGFILE is set.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # requires a certificate of the broker
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.check_hostname
    if tls.ca is None:
        context.load_default_certs()
    else:
        with _naming_files(f"ca {tls.ca}"):
            context.load_verify_locations(tls.ca)
    if tls.certificate is not None:
        # The password is always a function: without one OpenSSL would wait for a password on the terminal.
        password = _Password(_no_password if tls.key_password is None else tls.key_password.read().reveal)
        with _naming_files(f"certificate {tls.certificate}, key {tls.key or 'in the same file'}", password):
            context.load_cert_chain(tls.certificate, tls.key, password)
    return context


def handshake(connected: socket.socket, host: str, context: ssl.SSLContext, deadline: Deadline) -> ssl.SSLSocket:
    """Wrap `connected` in TLS and verify that the other side is `host`. An error closes `connected`.

    Raises:
        TlsFailed: the verification failed, or the broker refuses us.
        ConnectionLost: the connection ended during the handshake.
        DeadlineExceeded: the handshake took too long.
    """
    try:
        with closed_on_error(connected):
            connected.settimeout(deadline.remaining_s())
            # The zone of an IPv6 address is a name on this machine, and in no certificate (fault F13).
            name = host.partition("%")[0] if ":" in host else host
            wrapped = wrapped_in_tls(connected, context, server_hostname=name)
        with closed_on_error(wrapped):
            wrapped.do_handshake()
    except OSError as error:
        raise _mapped(error) from error
    return wrapped


def wrapped_in_tls(
    connected: socket.socket, context: ssl.SSLContext, *, server_hostname: str | None = None, server_side: bool = False
) -> ssl.SSLSocket:
    """The connection with TLS, before its handshake.

    Raises:
        OSError: the other side has left. The connection may be closed.
    """
    context.sslsocket_class = _ConnectedTlsSocket
    return context.wrap_socket(
        connected, server_hostname=server_hostname, server_side=server_side, do_handshake_on_connect=False
    )


class _ConnectedTlsSocket(ssl.SSLSocket):
    """A socket with TLS that closes itself if the other side has left.

    When it is created, it takes the file descriptor of the connection first and then asks for its other side. Python
    3.11 leaves it open if the other side has reset the connection by then, and no caller gets a socket to close.
    """

    def getpeername(self) -> Any:
        try:
            return super().getpeername()
        except OSError as error:
            self.close()
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)) from error


def refusal(error: OSError) -> TlsFailed | None:
    """The error for a broker that refuses an open connection; None if `error` means something else.

    With TLS 1.3 a broker reports only after the handshake that it rejects our certificate or requires one.
    """
    return _failed(error) if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or "") else None


def is_alert(data: memoryview) -> bool:
    """Whether the first bytes of a broker's answer are a TLS alert, sent in reply to plain text."""
    return _ALERT.match(data) is not None


def client_hello() -> bytes:
    """The first bytes that a client of TLS sends."""
    outgoing = ssl.MemoryBIO()
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def is_handshake(data: memoryview) -> bool:
    """Whether the first bytes of an answer continue the handshake that `client_hello` begins."""
    return bytes(data[:2]) == _HANDSHAKE


def _mapped(error: OSError) -> KafkaIOError:
    if isinstance(error, TimeoutError):
        return DeadlineExceeded("the TLS handshake did not finish before its deadline; does this port speak TLS?")
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsFailed(f"the server's certificate is not valid: {error.verify_message}")
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return _failed(error)
    return ConnectionLost(
        f"the connection broke during the TLS handshake; does this port speak TLS? ({system_reason(error)})"
    )


def _failed(error: ssl.SSLError) -> TlsFailed:
    reason = error.reason or str(error)
    words = reason.lower().replace("_", " ")
    if _ABOUT_OUR_CERTIFICATE.search(reason):
        return TlsFailed(f"the server requires a client certificate, or does not trust ours ({words})")
    return TlsFailed(_SENTENCES.get(reason) or f"the TLS handshake failed: {words}")


def _no_password() -> NoReturn:
    raise TlsFailed("the key is encrypted; set `key_password` to a reference to its password")


@dataclass(slots=True)
class _Password:
    """The function that OpenSSL asks for the password of a key, and whether it did."""

    reveal: Callable[[], bytes]
    was_asked: bool = False

    def __call__(self) -> bytes:
        self.was_asked = True
        return self.reveal()


@contextmanager
def _naming_files(files: str, password: _Password | None = None) -> Iterator[None]:
    try:
        yield
    except ssl.SSLError as error:
        # OpenSSL gives no reason for a wrong password, and neither for a file that is no PEM file (fault F06).
        without = "the password of the key is wrong" if password and password.was_asked else "a file is no PEM file"
        raise TlsFailed(f"cannot use {files}: {system_reason(error) if error.reason else without}") from error
    except OSError as error:
        raise TlsFailed(f"cannot use {files}: {system_reason(error)}") from error
    except ValueError as error:
        raise TlsFailed(
            f"cannot use {files}: a path, the contents or the password (of at most 1024 bytes) is not valid"
        ) from error
