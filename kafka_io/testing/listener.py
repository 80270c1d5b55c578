"""The listening socket of an embedded server: one thread accepts clients, and each client has a thread of its own."""

import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Callable

from kafka_io.closing import closed_on_error
from kafka_io.errors import KafkaIOError
from kafka_io.net.tls import wrapped_in_tls

logger = logging.getLogger(__name__)

_PAUSE_S = 0.1

ServeClient = Callable[[socket.socket], object]
"""Serves a client until it disconnects, or its socket is shut down. The socket is closed afterwards."""


class SocketListener:
    """Listens from its creation on, and serves clients from `start` to `stop`.

    Args:
        host: the address to listen on.
        port: the port; 0 chooses a free one.
        name: the first part of the names of its threads.
        max_connections: each has a thread; a further client is closed at once.
        tls: serves TLS with this context. The handshake is part of the first read, in the thread of the client.

    Attributes:
        port: the port on which clients connect.
    """

    def __init__(
        self, host: str, port: int, *, name: str, max_connections: int = 256, tls: ssl.SSLContext | None = None
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family)
        except OSError as error:
            raise OSError(error.errno, error.strerror, f"{host}:{port}") from error
        self.port = int(self._socket.getsockname()[1])  # the address of a server is known after its end, too
        self._tls = tls
        self._max_connections = max_connections
        self._name = name
        self._acceptor: threading.Thread | None = None
        self._clients: dict[socket.socket, threading.Thread] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def start(self, serve: ServeClient) -> None:
        """Accept connections. Clients that connected since the socket listens have waited in the backlog."""
        self._acceptor = threading.Thread(target=self._accept, args=(serve,), name=f"{self._name}-acceptor")
        self._acceptor.start()

    def stop(self) -> None:
        """Accept no more connections, end all of them, and wait for their threads; `start` need not have run."""
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the acceptor, which closing the socket does not
        if self._acceptor is not None:
            self._acceptor.join()
        self._socket.close()
        with self._lock:
            clients = dict(self._clients)
        for client, thread in clients.items():
            with contextlib.suppress(OSError):  # it is closed already
                client.shutdown(socket.SHUT_RDWR)
            thread.join()

    def _accept(self, serve: ServeClient) -> None:
        while not self._stopping.is_set():
            try:
                client, _ = self._socket.accept()
                if self._tls is not None:
                    with closed_on_error(client):
                        client = wrapped_in_tls(client, self._tls, server_side=True)
            except OSError as error:
                # For example, the process has no file descriptor left. The pause keeps this from becoming a busy loop.
                if not self._stopping.wait(_PAUSE_S):
                    logger.warning("a connection could not be accepted: %s", error)
            else:
                self._open(client, serve)

    def _open(self, client: socket.socket, serve: ServeClient) -> None:
        with self._lock:
            if len(self._clients) >= self._max_connections:
                logger.warning("a connection was closed at once: %d are open, the maximum", len(self._clients))
                client.close()
                return
            thread = threading.Thread(target=self._serve, args=(client, serve), name=f"{self._name}-client")
            self._clients[client] = thread
            thread.start()

    def _serve(self, client: socket.socket, serve: ServeClient) -> None:
        try:
            with client:
                serve(client)
        except (KafkaIOError, OSError) as error:
            # A broker refuses what it cannot answer by closing the connection [kafka-0.7: Errors].
            logger.info("connection closed: %s", error)
        finally:
            with self._lock:
                del self._clients[client]
