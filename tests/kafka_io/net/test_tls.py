"""TLS over real sockets: which brokers are trusted, and a TLS stream behaves like a plain one."""

import gc
import re
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from kafka_io.errors import ConnectFailed, ConnectionLost, DeadlineExceeded, SecretMissing, TlsFailed
from kafka_io.net.deadline import Deadline
from kafka_io.net.secret import SecretReference
from kafka_io.net.security import Tls
from kafka_io.net.stream import Stream
from kafka_io.net.tls import tls_context, wrapped_in_tls
from kafka_io.wire.framing import framed
from tests.fakes.hostile import Act, HostileServer, Peer, drip, hear, reset, send, stall
from tests.fakes.tls import CA, GOLDEN, over_tls, serving

GENEROUS = 20.0
SHORT = 0.3
LOADER = str(GOLDEN / "loader.pem")
ENCRYPTED = str(GOLDEN / "encrypted.key")
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
TRUSTING = Tls(ca=CA)
Connected = Callable[..., Stream]


@pytest.fixture
def connected() -> Iterator[Connected]:
    """TLS streams to a server that follows a script."""
    with ExitStack() as opened:

        def connect(*script: Act, tls: Tls | None = TRUSTING, host: str = "127.0.0.1", within: float = GENEROUS) -> Any:
            server = opened.enter_context(HostileServer(script))
            context = None if tls is None else tls_context(tls)
            return opened.enter_context(closing(Stream.connect(host, server.port, Deadline.after(within), context)))

        yield connect


def received(stream: Stream, count: int) -> bytes:
    """The next `count` bytes."""
    space = memoryview(bytearray(count))
    have = 0
    while have < count:
        have += stream.receive_into(space[have:], Deadline.after(GENEROUS))
    return bytes(space)


def hello(peer: Peer) -> None:
    """Receive the start of a handshake."""
    peer.read(5)


def echo(peer: Peer) -> None:
    """Receive a request and send it back."""
    hear(peer)
    peer.socket.sendall(peer.requests[-1])


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_go_both_ways_after_the_broker_proved_its_name(connected: Connected, version: ssl.TLSVersion) -> None:
    stream, data = connected(over_tls(serving(only=version), echo)), bytes(range(256)) * 4096
    stream.send(framed(data), Deadline.after(GENEROUS))
    assert received(stream, len(data)) == data


@pytest.mark.parametrize(
    ("certificate", "host", "ca", "message"),
    [
        ("broker", "localhost", CA, "mismatch, certificate is not valid for 'localhost'"),
        ("broker", "fe80::1%lo", CA, "mismatch, certificate is not valid for 'fe80::1'"),
        ("broker", "127.0.0.1", str(GOLDEN / "other-ca.pem"), "unable to get local issuer certificate"),
        ("broker", "127.0.0.1", None, "unable to get local issuer certificate"),
        ("expired", "127.0.0.1", CA, "certificate has expired"),
    ],
    ids=[
        "another host",
        "another address with a zone",
        "unknown authority",
        "not of the system's authorities",
        "expired",
    ],
)
def test_a_broker_without_a_valid_certificate_is_refused(  # faults X07, X14
    connected: Connected,
    monkeypatch: pytest.MonkeyPatch,
    certificate: str,
    host: str,
    ca: str | None,
    message: str,
) -> None:
    """No certificate names the zone of an IPv6 address, so only the address is compared (fault F13)."""
    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *more, **named: resolve("127.0.0.1", *more, **named))
    with pytest.raises(TlsFailed, match=f"certificate is not valid: .*{message}") as raised:
        connected(over_tls(serving(certificate), stall), tls=Tls(ca=ca), host=host)
    assert not raised.value.retriable


def test_without_check_hostname_a_broker_of_the_own_authority_can_have_any_name(connected: Connected) -> None:
    stream = connected(over_tls(serving(), send(b"hello")), tls=Tls(ca=CA, check_hostname=False), host="localhost")
    assert received(stream, 5) == b"hello"


def test_without_check_hostname_a_broker_of_another_authority_is_refused(connected: Connected) -> None:  # fault X07
    tls = Tls(ca=str(GOLDEN / "other-ca.pem"), check_hostname=False)
    with pytest.raises(TlsFailed, match="certificate is not valid"):
        connected(over_tls(serving(), stall), tls=tls)


def test_a_broker_that_offers_less_than_tls_1_2_is_refused(connected: Connected) -> None:  # fault X07
    # A ServerHello of TLS 1.1 (3.2): version, random, no session, TLS_RSA_WITH_AES_128_CBC_SHA, no compression.
    hello = b"\x02\x00\x00\x26" + b"\x03\x02" + bytes(32) + b"\x00" + b"\x00\x2f" + b"\x00"
    record = b"\x16\x03\x02" + len(hello).to_bytes(2, "big") + hello
    with pytest.raises(TlsFailed, match=re.escape("the server does not support TLS 1.2 or newer")):
        connected(send(record), stall)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_error_says_that_the_broker_requires_a_client_certificate(
    connected: Connected, version: ssl.TLSVersion
) -> None:
    # With TLS 1.3 only after the handshake: the first wait for an answer brings the alert.
    with pytest.raises(TlsFailed, match=r"require.* a client certificate") as raised:
        received(connected(over_tls(serving(loaders_only=True, only=version), stall)), 1)
    assert not raised.value.retriable


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("key", [None, LOADER, ENCRYPTED], ids=["in the certificate's file", "plain", "encrypted"])
def test_the_client_certificate_is_sent_to_a_broker_that_requests_it(
    connected: Connected, monkeypatch: pytest.MonkeyPatch, version: ssl.TLSVersion, key: str | None
) -> None:
    monkeypatch.setenv("KEY_PASSWORD", "letmein")
    password = SecretReference("env", "KEY_PASSWORD") if key == ENCRYPTED else None
    tls = Tls(ca=CA, certificate=LOADER, key=key, key_password=password)
    stream = connected(over_tls(serving(loaders_only=True, only=version), send(b"hello")), tls=tls)
    assert received(stream, 5) == b"hello"


@pytest.mark.parametrize(
    ("tls", "message"),
    [
        (Tls(ca="/no/such/ca.pem"), "ca /no/such/ca.pem: no such file"),
        (Tls(ca=ENCRYPTED), "ca .*encrypted.key"),
        (Tls(certificate="/no/such/loader.pem"), "certificate /no/such/loader.pem, key in the same file: no such file"),
        (Tls(certificate=CA), "certificate .*ca.pem, key in the same file: a file is no PEM file"),
        (Tls(certificate=LOADER, key=str(GOLDEN / "broker.pem")), "key .*broker.pem: .*mismatch"),
        (Tls(certificate=LOADER, key=ENCRYPTED), "the key is encrypted; set `key_password`"),
        (
            Tls(certificate=LOADER, key=ENCRYPTED, key_password=SecretReference("env", "WRONG")),
            "key .*encrypted.key: the password of the key is wrong",  # fault F06
        ),
        (Tls(certificate=LOADER, key=ENCRYPTED, key_password=SecretReference("env", "LONG")), "key .*1024 bytes"),
        (Tls(ca="nul\0"), "a path, the contents or the password .* is not valid"),
    ],
)
def test_the_error_names_files_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, tls: Tls, message: str) -> None:
    monkeypatch.setenv("WRONG", "guess")
    monkeypatch.setenv("LONG", "x" * 1025)
    with pytest.raises(TlsFailed, match=message):
        tls_context(tls)


def test_a_missing_key_password_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEY_PASSWORD", raising=False)
    with pytest.raises(SecretMissing, match="env:KEY_PASSWORD"):
        tls_context(Tls(certificate=LOADER, key=ENCRYPTED, key_password=SecretReference("env", "KEY_PASSWORD")))


def test_session_keys_are_never_written_to_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    assert tls_context(Tls(ca=CA)).keylog_filename is None


@pytest.mark.parametrize("script", [[hello], [hello, reset]], ids=["closes", "resets"])
def test_a_handshake_that_the_port_ends_is_a_retriable_error(connected: Connected, script: list[Act]) -> None:
    with pytest.raises(ConnectFailed, match="does this port speak TLS") as raised:  # fault W16
        connected(*script)
    assert raised.value.retriable


@pytest.mark.parametrize("script", [[stall], [drip(b"\x16\x03\x03\x00\xff" + bytes(255), every_s=0.05)]])
def test_waiting_for_a_handshake_ends_with_the_deadline(
    connected: Connected, script: list[Act]
) -> None:  # faults W05, W16
    with pytest.raises(ConnectFailed, match="the TLS handshake did not finish before its deadline"):
        connected(*script, within=SHORT)


def test_the_error_says_that_the_port_does_not_speak_tls(connected: Connected) -> None:  # fault W16
    with pytest.raises(TlsFailed, match="this port does not speak TLS"):
        connected(send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), stall)


@pytest.mark.parametrize("minor", range(5))
def test_a_client_without_tls_learns_that_the_port_speaks_tls(connected: Connected, minor: int) -> None:  # fault W16
    # The JVM's alert: unexpected_message, or internal_error. Its first four bytes as a frame's size are 352 MB.
    stream = connected(hear, send(bytes((0x15, 3, minor, 0, 2, 2, 80))), stall, tls=None)
    stream.send(framed(b"a request"), Deadline.after(GENEROUS))
    with pytest.raises(TlsFailed, match="this port speaks TLS") as raised:
        received(stream, 4)
    assert not raised.value.retriable


def test_a_client_without_tls_learns_that_the_port_may_require_tls_or_sasl(connected: Connected) -> None:  # fault W16
    stream = connected(over_tls(serving(), stall), tls=None)
    stream.send(framed(b"x"), Deadline.after(GENEROUS))
    with pytest.raises(ConnectionLost, match="does this port require TLS or SASL"):
        received(stream, 1)


@pytest.mark.parametrize("data", [b"\x15\x03\x03\x01", b"\x00\x03\x03\x00", b"\x16\x03\x03\x00"])
def test_a_first_answer_that_is_not_an_alert_is_data(connected: Connected, data: bytes) -> None:
    assert received(connected(send(data), tls=None), 4) == data


def test_an_alert_later_in_a_plain_stream_is_data(connected: Connected) -> None:
    stream = connected(send(b"1234\x15\x03\x03\x00"), tls=None)
    assert received(stream, 4) == b"1234"
    assert received(stream, 4) == b"\x15\x03\x03\x00"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_ticket_is_not_an_unread_byte(connected: Connected, version: ssl.TLSVersion) -> None:  # fault W08
    stream = connected(over_tls(serving(only=version), hear, send(b"ab"), stall))
    stream.send(framed(b"x"), Deadline.after(GENEROUS))
    assert received(stream, 1) == b"a"
    assert stream.has_unread()
    assert stream.has_unread()
    assert received(stream, 1) == b"b"
    assert not stream.has_unread()


def test_a_received_session_ticket_is_processed_without_waiting(connected: Connected) -> None:  # fault W08
    script = over_tls(serving(only=ssl.TLSVersion.TLSv1_3), stall)
    stream = connected(script)
    stream._socket.settimeout(GENEROUS)
    assert socket.socket.recv(stream._socket, 1, socket.MSG_PEEK)  # the server's tickets are here
    assert not stream.has_unread()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("ending", [[], [reset]], ids=["closed", "reset"])
def test_an_ended_stream_is_a_lost_connection(
    connected: Connected, version: ssl.TLSVersion, ending: list[Act]
) -> None:  # fault W02
    stream = connected(over_tls(serving(only=version), hear, *ending))
    stream.send(framed(b"x"), Deadline.after(GENEROUS))
    with pytest.raises(ConnectionLost):
        received(stream, 1)
    with pytest.raises(ConnectionLost):
        stream.has_unread()


def test_waiting_for_a_silent_peer_ends_with_the_deadline(connected: Connected) -> None:  # fault W04
    stream = connected(over_tls(serving(), stall))
    with pytest.raises(DeadlineExceeded):
        stream.receive_into(memoryview(bytearray(1)), Deadline.after(SHORT))


def test_sending_to_a_slow_peer_ends_with_the_deadline(
    connected: Connected,
) -> None:  # fault W05
    def sip(peer: Peer) -> None:
        while peer.socket.recv(16 * 1024):
            peer.stopping.wait(0.05)

    stream = connected(over_tls(serving(), sip))
    with pytest.raises(DeadlineExceeded):
        stream.send(bytes(64 * 1024 * 1024), Deadline.after(SHORT))


def test_the_next_address_is_tried_after_a_dead_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # faults W01, W17
    with HostileServer([reset]) as dead, HostileServer([over_tls(serving(), send(b"hello"))]) as living:
        addresses = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port)) for server in (dead, living)
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
        stream = Stream.connect("broker.example", 9092, Deadline.after(GENEROUS), tls_context(Tls(ca=CA)))
        with closing(stream):
            assert received(stream, 5) == b"hello"


class _StillConnected(socket.socket):
    """A connection that is reset after its other side has been asked for."""

    def getpeername(self) -> tuple[str, int]:
        return "127.0.0.1", 1


def test_a_connection_that_is_reset_while_it_is_wrapped_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        accepted, _ = listening.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    with _StillConnected(fileno=accepted.detach()) as connected, pytest.raises(ConnectionResetError):
        wrapped_in_tls(connected, serving(), server_side=True)
    gc.collect()  # a socket that nothing has closed is a ResourceWarning
