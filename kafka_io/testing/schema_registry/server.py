"""The embedded registry: one thread accepts clients, and each client has a thread for its one request."""

import contextlib
import logging
import socket
import socketserver
import ssl
import sys
import threading
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self

from kafka_io.closing import Closing
from kafka_io.schema_registry.answers import ReferenceAnswer
from kafka_io.stopping import run_foreground
from kafka_io.testing.data_dir import locked_data_dir
from kafka_io.testing.schema_registry.api import reply_to
from kafka_io.testing.schema_registry.faults import Fault, Faults
from kafka_io.testing.schema_registry.replies import RegistryReply
from kafka_io.testing.schema_registry.store import SchemaStore, StoredSchema

logger = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_MAX_BODY_BYTES = 16 * 1024 * 1024
_IDLE_S = 30.0


@dataclass(eq=False)
class EmbeddedSchemaRegistry(Closing):
    """A schema registry on loopback, in this process; a context manager, or `start` and `close`.

    Args:
        port: the port to listen on; 0 chooses a free one.
        data_dir: the folder that keeps the schemas; None keeps them in memory only.
        authorization: the header `Authorization` that requests must have; None accepts all requests.
        tls: serves `https` with this context.
    """

    port: int = 0
    data_dir: Path | None = None
    _: KW_ONLY
    authorization: str | None = None
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        self._faults = Faults()
        self._parts = ExitStack()
        self._server: _Server | None = None
        self._store: SchemaStore | None = None

    def start(self) -> None:
        """Listen, and serve clients until `close`.

        Raises:
            DataDirInUse: another registry or broker uses the folder.
            Corrupt: the file with the schemas has the wrong content.
            OSError: the port is in use.
        """
        with ExitStack() as parts:
            if self.data_dir is not None:
                parts.enter_context(locked_data_dir(self.data_dir))
            self._store = SchemaStore(self.data_dir)
            self._server = _Server((_HOST, self.port), self._store, self._faults, self.authorization, self.tls)
            parts.callback(self._server.close)
            self._server.start()
            self._parts = parts.pop_all()

    def close(self) -> None:
        """End all connections and stop listening. Calling it again does nothing."""
        self._parts.close()

    @property
    def url(self) -> str:
        """The base URL, after `start`."""
        assert self._server is not None, "the registry has not been started"
        return f"http{'s' if self.tls else ''}://{_HOST}:{self._server.server_address[1]}"

    @property
    def requests(self) -> list[str]:
        """The method and path of all requests since `start`, such as `GET /subjects`."""
        assert self._server is not None, "the registry has not been started"
        return list(self._server.requests)

    def register(
        self, subject: str, schema: str, *, schema_type: str = "AVRO", references: Iterable[tuple[str, str, int]] = ()
    ) -> int:
        """Register a schema as the newest version of a subject, as a client does, and return its id.

        Args:
            subject: the subject.
            schema: the text of the schema.
            schema_type: AVRO, JSON or PROTOBUF.
            references: the name, subject and version of each schema that this one refers to.

        Raises:
            Refused: the schema is not valid.
        """
        assert self._store is not None, "the registry has not been started"
        stored = tuple(ReferenceAnswer(*reference) for reference in references)
        return self._store.register(subject, StoredSchema(schema=schema, schema_type=schema_type, references=stored))

    def inject(self, fault: Fault, *, path: str = r".*", times: int | None = 1) -> None:
        """Answer the next requests whose path matches with a fault (see faults.py); None means all of them."""
        self._faults.inject(fault, path=path, times=times)

    def run_foreground(self) -> None:
        """Run the registry until SIGTERM or SIGINT arrives, then stop it; see `stopping.run_foreground`."""
        run_foreground(self, lambda: f"penstock registry ready on {self.url}")

    def __enter__(self) -> Self:
        self.start()
        return self


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    request_queue_size = 64
    # A thread ends after one request or _IDLE_S; `close` shuts its socket down and waits for it.
    daemon_threads = False

    def __init__(
        self,
        address: tuple[str, int],
        store: SchemaStore,
        faults: Faults,
        authorization: str | None,
        tls: ssl.SSLContext | None,
    ) -> None:
        self.store = store
        self.faults = faults
        self.authorization = authorization
        self.stopping = threading.Event()
        self.requests: list[str] = []
        self._tls = tls
        self._clients: set[Any] = set()
        self._lock = threading.Lock()
        super().__init__(address, _Handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), name="schema-registry")

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self.stopping.set()
        self.shutdown()
        self._thread.join()
        with self._lock:
            clients = set(self._clients)
        for client in clients:
            with contextlib.suppress(OSError):  # the client has left
                client.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def get_request(self) -> tuple[Any, Any]:
        client, address = super().get_request()
        if self._tls is not None:  # the handshake is part of the first read, in the thread of the client
            client = self._tls.wrap_socket(client, server_side=True, do_handshake_on_connect=False)
        with self._lock:
            self._clients.add(client)
        return client, address

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._clients.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - of the base class
        logger.info("connection of %s closed: %s", client_address, sys.exc_info()[1])


class _Handler(BaseHTTPRequestHandler):
    """Reads one request and sends its reply, or the fault that is injected."""

    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S
    server: _Server

    @property
    def stopping(self) -> threading.Event:
        """Set when the registry stops."""
        return self.server.stopping

    def send(self, data: bytes) -> None:
        """Send bytes to the client."""
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Log what the base class prints."""
        logger.debug(format, *args)

    def _serve(self) -> None:
        self.close_connection = True
        path = self.path.partition("?")[0]
        self.server.requests.append(f"{self.command} {self.path}")
        self.server.faults.next(path)(self._reply(path), self)

    def _reply(self, path: str) -> RegistryReply:
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > _MAX_BODY_BYTES:
            return RegistryReply.of_error(413, 413, f"a request has at most {_MAX_BODY_BYTES} bytes")
        body = self.rfile.read(int(length))
        if self.server.authorization not in {None, self.headers.get("Authorization")}:
            return RegistryReply.of_error(401, 401, "Unauthorized")
        return reply_to(self.server.store, self.command, path, body)

    do_GET = do_POST = do_PUT = _serve  # noqa: N815 - http.server looks them up by these names
