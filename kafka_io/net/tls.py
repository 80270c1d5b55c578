"""TLS: what we demand of a broker, and how a connection becomes one with TLS."""

import re
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from kafka_io.errors import ConnectionLost, DeadlineExceeded, KafkaIOError, TlsFailed
from kafka_io.net.deadline import Deadline
from kafka_io.net.security import Tls

# An alert's record: type 21, version 3.x, a length of 2. As the size of a frame it would be 352 MB (W16).
_ALERT = re.compile(rb"\x15\x03[\x00-\x04]\x00")
_OF_OUR_CERTIFICATE = re.compile("ALERT.*(CERTIFICATE|UNKNOWN_CA)")
_SENTENCES = {
    "WRONG_VERSION_NUMBER": "this port does not speak TLS",
    "UNSUPPORTED_PROTOCOL": "the broker has no TLS 1.2 or newer",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the broker has no TLS 1.2 or newer",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the broker refuses the handshake; it may miss our certificate",
}


def tls_context(tls: Tls) -> ssl.SSLContext:
    """What connections are made with; files and secrets are read now. It serves any number of them, and any threads.

    Raises:
        TlsFailed: a file is missing or not what it should be.
        SecretMissing: the key's password is.
    """
    # Not `create_default_context`: that one writes the session keys to a file if the environment says so.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # demands a certificate
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.check_hostname
    if tls.ca is None:
        context.load_default_certs()
    else:
        with _naming(f"ca {tls.ca}"):
            context.load_verify_locations(tls.ca)
    if tls.certificate is not None:
        password = _no_password if tls.key_password is None else tls.key_password.read().reveal
        _load_own(context, tls.certificate, tls.key, password)
    return context


def handshake(connected: socket.socket, host: str, context: ssl.SSLContext, deadline: Deadline) -> ssl.SSLSocket:
    """`connected` with TLS, after the other side has proven to be `host`. It is used up, also by an error.

    Raises:
        TlsFailed: it has not, or refuses us.
        ConnectionLost: the connection ended instead.
        DeadlineExceeded: it is too slow.
    """
    try:
        with _closed_on_error(connected):
            connected.settimeout(deadline.left())
            wrapped = context.wrap_socket(connected, server_hostname=host, do_handshake_on_connect=False)
        with _closed_on_error(wrapped):
            wrapped.do_handshake()
    except OSError as error:
        raise _mapped(error) from error
    return wrapped


def refusal(error: OSError) -> TlsFailed | None:
    """The broker's refusal of an open connection, if that is what `error` is.

    With TLS 1.3 a broker tells only after the handshake that it does not take our certificate, or misses it.
    """
    return _failed(error) if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or "") else None


def is_alert(data: memoryview) -> bool:
    """Whether these first bytes of a broker's answer to plain text are a TLS alert."""
    return _ALERT.match(data) is not None


def _mapped(error: OSError) -> KafkaIOError:
    if isinstance(error, TimeoutError):
        return DeadlineExceeded("no whole TLS handshake before its deadline; does this port speak TLS?")
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsFailed(f"the broker's certificate is refused: {error.verify_message}")
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return _failed(error)
    return ConnectionLost(f"the connection broke in the TLS handshake; does this port speak TLS? ({error})")


def _failed(error: ssl.SSLError) -> TlsFailed:
    reason = error.reason or str(error)
    if _OF_OUR_CERTIFICATE.search(reason):
        return TlsFailed(f"the broker misses our certificate, or does not trust it ({_spoken(reason)})")
    return TlsFailed(_SENTENCES.get(reason) or f"no TLS with this broker: {_spoken(reason)}")


def _spoken(reason: str) -> str:
    return reason.lower().replace("_", " ")


def _load_own(context: ssl.SSLContext, certificate: str, key: str | None, password: Callable[[], bytes]) -> None:
    with _naming(f"certificate {certificate}, key {key or 'in it'}"):
        # A callable in any case: without one OpenSSL would ask for the password on the terminal, and wait.
        context.load_cert_chain(certificate, key, password)


def _no_password() -> NoReturn:
    raise TlsFailed("the key is encrypted; name its password by `key_password`")


@contextmanager
def _closed_on_error(connected: socket.socket) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connected.close()
        raise


@contextmanager
def _naming(files: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise TlsFailed(f"cannot use {files}: {error}") from error
