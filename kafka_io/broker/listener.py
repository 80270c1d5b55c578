"""The acceptor: one thread that takes connections, and one thread for each of them, up to a number."""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from typing import Protocol

from kafka_io.broker.client_session import ClientSession

logger = logging.getLogger(__name__)

_PAUSE_S = 0.1


OpenSession = Callable[[socket.socket], ClientSession]


class Listening(Protocol):
    """What a broker's settings say of its listener."""

    @property
    def broker_id(self) -> int:
        """For the names of threads."""
        ...

    @property
    def host(self) -> str:
        """Bound to."""
        ...

    @property
    def port(self) -> int:
        """Bound to; 0 takes a free one."""
        ...

    @property
    def max_connections(self) -> int:
        """One client more is closed at once."""
        ...


class Listener:
    """A listening socket, from its making on, and the sessions that come of it once it is started."""

    def __init__(self, config: Listening) -> None:
        family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
        self._max_connections = config.max_connections
        self._socket = socket.create_server((config.host, config.port), family=family)
        self._name = f"broker-{config.broker_id}"
        self._acceptor: threading.Thread | None = None
        self._sessions: dict[ClientSession, threading.Thread] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    @property
    def port(self) -> int:
        """The port clients connect to."""
        return int(self._socket.getsockname()[1])

    def start(self, open_session: OpenSession) -> None:
        """Begin to take connections; those made since the socket listens are waiting."""
        name = f"{self._name}-acceptor"
        self._acceptor = threading.Thread(target=self._accept, args=(open_session,), name=name)
        self._acceptor.start()

    def stop(self) -> None:
        """Take no more connections, end those there are, and wait for their threads. Right for one never started."""
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the acceptor; closing alone would not
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
                if not self._stopping.wait(_PAUSE_S):  # no descriptor left, say: not retried in a spin
                    logger.warning("a connection could not be taken: %s", error)
            else:
                self._begin(client, open_session)

    def _begin(self, client: socket.socket, open_session: OpenSession) -> None:
        with self._lock:
            if len(self._sessions) >= self._max_connections:
                logger.warning("a connection closed at once: there are %d already", len(self._sessions))
                client.close()
                return
            session = open_session(client)
            thread = threading.Thread(target=self._serve, args=(session,), name=f"{self._name}-client")
            self._sessions[session] = thread
            thread.start()

    def _serve(self, session: ClientSession) -> None:
        try:
            session.run()
        finally:
            with self._lock:
                del self._sessions[session]
