"""A server that does to its clients what a script says: a real socket on loopback, one thread, one client at a time.

A script is a list of acts for one connection, which is closed after the last of them. The scripts belong to the
connections in their order; the last one serves all that come after.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Self

from kafka_io.model import Broker


class Peer:
    """One client, as the acts see it; its requests are kept without their sizes."""

    def __init__(self, connected: socket.socket, stopping: threading.Event) -> None:
        self.socket = connected
        self.stopping = stopping
        self.requests: list[bytes] = []

    def read(self, count: int) -> bytes:
        """`count` bytes from the client.

        Raises:
            ConnectionError: it left before.
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
    """Wait for a whole request."""
    (size,) = struct.unpack(">i", peer.read(4))
    peer.requests.append(peer.read(size))


def stall(peer: Peer) -> None:
    """Say no more; until the client leaves."""
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
    """Send `data` a byte at a time."""

    def act(peer: Peer) -> None:
        for byte in data:
            peer.socket.sendall(bytes((byte,)))
            peer.stopping.wait(every_s)

    return act


class HostileServer:
    """Serves `scripts` until the block ends; what it heard is in `peers`, one per connection."""

    def __init__(self, *scripts: Sequence[Act]) -> None:
        self._scripts = scripts
        self._stopping = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, name="hostile-server")
        self.port = int(self._listening.getsockname()[1])
        self.peers: list[Peer] = []

    @property
    def broker(self) -> Broker:
        """The server as a registry would name it, broker 7."""
        return Broker(7, "127.0.0.1", self.port)

    @property
    def requests(self) -> list[bytes]:
        """All requests, over all connections, in their order."""
        return [request for peer in self.peers for request in peer.requests]

    def _serve(self) -> None:
        while True:
            try:
                connected, _ = self._listening.accept()
            except OSError:  # the block ended
                return
            with connected:
                peer = Peer(connected, self._stopping)
                script = self._scripts[min(len(self.peers), len(self._scripts) - 1)]
                self.peers.append(peer)
                if self._stopping.is_set():
                    return
                with contextlib.suppress(OSError):  # the client left, as it may
                    for act in script:
                        act(peer)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        sockets = [self._listening, *(peer.socket for peer in self.peers)]
        for open_socket in sockets:
            with contextlib.suppress(OSError):  # it is closed already
                open_socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()
