"""A TCP proxy that cuts a connection at a message: before the server gets it, or before the client gets the answer."""

import socket
import threading
from contextlib import suppress
from typing import Literal

from kafka_io.closing import Closing

Cut = Literal["before", "after", "held"]
_CHUNK = 65_536


class CutConnection(Closing):
    """A proxy on loopback, in front of a server on loopback. It cuts the first connection that sends `message`.

    `before`: the message is lost. `after`: the answer is lost. `held`: the message is lost, and the server's end of the
    connection stays open until the proxy is closed. If `final`, the proxy accepts no connection after that.
    """

    def __init__(self, server_port: int, message: bytes, *, cut: Cut, final: bool = False) -> None:
        self._server_port, self._message, self._cut, self._final = server_port, message, cut, final
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.done = threading.Event()
        """Set when a connection was cut."""
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Close the proxy and all connections."""
        _close(self._listener, *self._open)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
                self._open += (client, server)
                threading.Thread(target=self._answer, args=(client, server), daemon=True).start()
                threading.Thread(target=self._ask, args=(client, server), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(_CHUNK):
                if self._message in data and not self.done.is_set():
                    self._cut_off(client, server, data)
                    return
                server.sendall(data)
        _close(server)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK):
                if self.done.is_set() and client.fileno() < 0:
                    break
                client.sendall(data)
        if self._cut != "held":
            _close(client)

    def _cut_off(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        self.done.set()
        if self._final:
            _close(self._listener)
        _close(client)
        if self._cut == "after":
            server.sendall(data)
            server.shutdown(socket.SHUT_WR)  # the server does what it has received, and ends
        elif self._cut == "before":
            _close(server)


def _close(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):  # shutdown wakes a thread that waits for the socket
            each.shutdown(socket.SHUT_RDWR)
        each.close()
