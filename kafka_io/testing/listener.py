"""The listening socket of an embedded broker: one thread accepts clients, and each client has a thread of its own."""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from typing import Any

from kafka_io.testing.client_session import ClientSession
from kafka_io.testing.config import BrokerConfig

logger = logging.getLogger(__name__)

_PAUSE_S = 0.1

OpenSession = Callable[[socket.socket], ClientSession[Any]]


class SocketListener:
    """Listens from its creation on, and serves clients from `start` to `stop`."""

    def __init__(self, config: BrokerConfig) -> None:
        family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
        self._max_connections = config.max_connections
        try:
            self._socket = socket.create_server((config.host, config.port), family=family)
        except OSError as error:
            raise OSError(error.errno, error.strerror, f"{config.host}:{config.port}") from error
        self._name = f"broker-{config.broker_id}"
        self._acceptor: threading.Thread | None = None
        self._sessions: dict[ClientSession[Any], threading.Thread] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    @property
    def port(self) -> int:
        """The port on which clients connect."""
        return int(self._socket.getsockname()[1])

    def start(self, open_session: OpenSession) -> None:
        """Accept connections. Clients that connected since the socket listens have waited in the backlog."""
        self._acceptor = threading.Thread(target=self._accept, args=(open_session,), name=f"{self._name}-acceptor")
        self._acceptor.start()

    def stop(self) -> None:
        """Accept no more connections, end all sessions, and wait for their threads; `start` need not have run."""
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the acceptor, which closing the socket does not
        if self._acceptor is not None:
            self._acceptor.join()
        self._socket.close()
        with self._lock:
            sessions = dict(self._sessions)
        for session, thread in sessions.items():
            session.interrupt()
            thread.join()

    def _accept(self, open_session: OpenSession) -> None:
        while not self._stopping.is_set():
            try:
                client, _ = self._socket.accept()
            except OSError as error:
                # For example, the process has no file descriptor left. The pause keeps this from becoming a busy loop.
                if not self._stopping.wait(_PAUSE_S):
                    logger.warning("a connection could not be accepted: %s", error)
            else:
                self._open(client, open_session)

    def _open(self, client: socket.socket, open_session: OpenSession) -> None:
        with self._lock:
            if len(self._sessions) >= self._max_connections:
                logger.warning("a connection was closed at once: %d are open, the maximum", len(self._sessions))
                client.close()
                return
            session = open_session(client)
            thread = threading.Thread(target=self._serve, args=(session,), name=f"{self._name}-client")
            self._sessions[session] = thread
            thread.start()

    def _serve(self, session: ClientSession[Any]) -> None:
        try:
            session.run()
        finally:
            with self._lock:
                del self._sessions[session]
