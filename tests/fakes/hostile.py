"""A server that misbehaves by script: a real socket on loopback, one thread, one client at a time.

A script is a list of acts for one connection, which is closed after the last act. The first connection gets the first
script, the second connection the second script, and so on; all later connections get the last script.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Self

from kafka_io.model import Broker


class Peer:
    """The client of one connection. `requests` are its requests, each without the four bytes of its size."""

    def __init__(self, connected: socket.socket, stopping: threading.Event) -> None:
        self.socket = connected
        self.stopping = stopping
        self.requests: list[bytes] = []

    def read(self, count: int) -> bytes:
        """`count` bytes from the client.

        Raises:
            ConnectionError: the client left before it sent that many.
        """
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionResetError("the client left")
            data += more
        return data


Act = Callable[[Peer], None]


def hear(peer: Peer) -> None:
    """Wait for a complete request."""
    (size,) = struct.unpack(">i", peer.read(4))
    peer.requests.append(peer.read(size))


def stall(peer: Peer) -> None:
    """Send nothing more until the client leaves."""
    while peer.socket.recv(4096):
        pass


def reset(peer: Peer) -> None:
    """End the connection with an RST instead of a FIN."""
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.socket.close()


def send(data: bytes) -> Act:
    """Send `data` in one piece."""
    return lambda peer: peer.socket.sendall(data)


def drip(data: bytes, *, every_s: float) -> Act:
    """Send `data` byte by byte, with a pause of `every_s` seconds after each byte."""

    def act(peer: Peer) -> None:
        for byte in data:
            peer.socket.sendall(bytes((byte,)))
            peer.stopping.wait(every_s)

    return act


class HostileServer:
    """Serves `scripts` until the `with` block ends. `peers` has one client per connection, with its requests."""

    def __init__(self, *scripts: Sequence[Act]) -> None:
        self._scripts = scripts
        self._stopping = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, name="hostile-server")
        self.port = int(self._listening.getsockname()[1])
        self.peers: list[Peer] = []

    @property
    def broker(self) -> Broker:
        """The server's address as a registry has it, with broker id 7."""
        return Broker(7, "127.0.0.1", self.port)

    @property
    def requests(self) -> list[bytes]:
        """The requests of all connections, in order."""
        return [request for peer in self.peers for request in peer.requests]

    def _serve(self) -> None:
        while True:
            try:
                connected, _ = self._listening.accept()
            except OSError:  # the `with` block ended
                return
            with connected:
                peer = Peer(connected, self._stopping)
                script = self._scripts[min(len(self.peers), len(self._scripts) - 1)]
                self.peers.append(peer)
                if self._stopping.is_set():
                    return
                with contextlib.suppress(OSError):  # the client may leave at any time
                    for act in script:
                        act(peer)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        sockets = [self._listening, *(peer.socket for peer in self.peers)]
        for open_socket in sockets:
            with contextlib.suppress(OSError):  # the socket is closed already
                open_socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()
