"""Streams connect within a deadline, and turn errors of the operating system into errors of kafka_io."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from kafka_io.errors import ConnectFailed, ConnectionLost, DeadlineExceeded
from kafka_io.net.deadline import Deadline
from kafka_io.net.stream import Stream
from kafka_io.wire.framing import framed
from tests.fakes.hostile import Act, HostileServer, hear, reset, send, stall

Connected = Callable[[list[Act]], Stream]

GENEROUS = 20.0
SHORT = 0.3


@pytest.fixture
def dead_port() -> int:
    """A port of loopback without a listener."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def black_hole() -> Iterator[int]:
    """A port that answers no SYN, because its queue of waiting connections is full."""
    with ExitStack() as sockets:
        server = sockets.enter_context(closing(socket.create_server(("127.0.0.1", 0), backlog=0)))
        for _ in range(4):
            client = sockets.enter_context(closing(socket.socket()))
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield int(server.getsockname()[1])


@pytest.fixture
def connected() -> Iterator[Connected]:
    """Streams to a server that follows a script."""
    with ExitStack() as opened:

        def connect(script: list[Act]) -> Stream:
            server = opened.enter_context(HostileServer(script))
            stream = Stream.connect("127.0.0.1", server.port, Deadline.after(GENEROUS))
            return opened.enter_context(closing(stream))

        yield connect


def resolve_to(monkeypatch: pytest.MonkeyPatch, *ports: int) -> None:
    """Resolve every host name to these ports of loopback, which stand for hosts."""

    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)) for port in ports]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def test_the_error_names_the_address_that_refused_the_connection(dead_port: int) -> None:  # fault W01
    with pytest.raises(ConnectFailed, match=rf"port {dead_port} \(127.0.0.1: .*refused") as raised:
        Stream.connect("127.0.0.1", dead_port, Deadline.after(GENEROUS))
    assert raised.value.retriable


def test_connecting_to_a_silent_address_ends_with_the_deadline(black_hole: int) -> None:  # fault W01
    with pytest.raises(ConnectFailed, match="no answer in time"):
        Stream.connect("127.0.0.1", black_hole, Deadline.after(SHORT))


def test_the_next_address_is_tried_after_a_dead_one(  # faults W01, W17
    monkeypatch: pytest.MonkeyPatch, dead_port: int
) -> None:
    with HostileServer([send(b"hello")]) as server:
        resolve_to(monkeypatch, dead_port, server.port)
        with closing(Stream.connect("broker.example", 9092, Deadline.after(GENEROUS))) as stream:
            assert stream.receive_into(memoryview(bytearray(5)), Deadline.after(GENEROUS)) == 5


@pytest.mark.slow
def test_a_silent_address_leaves_time_for_the_next_one(  # faults W01, W17
    monkeypatch: pytest.MonkeyPatch, black_hole: int
) -> None:
    with HostileServer([send(b"hello")]) as server:
        resolve_to(monkeypatch, black_hole, server.port)
        with closing(Stream.connect("broker.example", 9092, Deadline.after(2.0))) as stream:
            assert stream.receive_into(memoryview(bytearray(5)), Deadline.after(GENEROUS)) == 5


def test_the_error_names_all_dead_addresses(monkeypatch: pytest.MonkeyPatch, dead_port: int) -> None:  # fault W01
    resolve_to(monkeypatch, dead_port, dead_port)
    with pytest.raises(ConnectFailed, match=r"refused; 127\.0\.0\.1: .*refused"):
        Stream.connect("broker.example", 9092, Deadline.after(GENEROUS))


def test_an_address_family_that_the_machine_lacks_is_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fault W17
    with HostileServer([stall]) as server:
        addresses = [(family, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port)) for family in (-7, socket.AF_INET)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
        Stream.connect("broker.example", server.port, Deadline.after(GENEROUS)).close()


@pytest.mark.parametrize("host", ["no-such-host.invalid", "x" * 70 + ".example", "nul\0", "", "\udcff"])
def test_a_host_name_without_address_is_a_failed_connection(host: str) -> None:
    with pytest.raises(ConnectFailed):
        Stream.connect(host, 1, Deadline.after(GENEROUS))


def test_no_address_is_tried_after_the_deadline(dead_port: int) -> None:
    with pytest.raises(ConnectFailed, match="before its deadline"):
        Stream.connect("127.0.0.1", dead_port, Deadline.after(-1))


@pytest.mark.parametrize("script", [[hear], [hear, reset]], ids=["closed", "reset"])
def test_an_ended_stream_is_a_lost_connection(connected: Connected, script: list[Act]) -> None:  # fault W02
    stream = connected(script)
    stream.send(framed(b"a request"), Deadline.after(GENEROUS))
    with pytest.raises(ConnectionLost):
        stream.receive_into(memoryview(bytearray(1)), Deadline.after(GENEROUS))
    with pytest.raises(ConnectionLost):
        stream.has_unread()


def test_waiting_for_a_silent_peer_ends_with_the_deadline(connected: Connected) -> None:  # fault W04
    stream = connected([stall])
    with pytest.raises(DeadlineExceeded):
        stream.receive_into(memoryview(bytearray(1)), Deadline.after(SHORT))


def test_sending_to_a_peer_that_reads_nothing_ends_with_the_deadline() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        stream = Stream.connect("127.0.0.1", int(server.getsockname()[1]), Deadline.after(GENEROUS))
        with closing(stream), pytest.raises(DeadlineExceeded):
            stream.send(bytes(64 * 1024 * 1024), Deadline.after(SHORT))


def test_unread_bytes_are_noticed_and_can_still_be_received(connected: Connected) -> None:  # fault W08
    stream, space = connected([send(b"ab"), stall]), memoryview(bytearray(2))
    assert stream.receive_into(space[:1], Deadline.after(GENEROUS)) == 1
    assert stream.has_unread()
    assert stream.receive_into(space[1:], Deadline.after(GENEROUS)) == 1
    assert (bytes(space), stream.has_unread()) == (b"ab", False)


def test_a_closed_stream_can_be_closed_again(connected: Connected) -> None:
    stream = connected([stall])
    stream.close()
    stream.close()
    with pytest.raises(ConnectionLost):
        stream.send(b"x", Deadline.after(GENEROUS))
