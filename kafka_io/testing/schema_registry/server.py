"""The embedded registry: one thread accepts clients, and each client has a thread for its one request."""

import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Self

from kafka_io.closing import Closing
from kafka_io.schema_registry.answers import ReferenceAnswer
from kafka_io.stopping import run_foreground
from kafka_io.testing.data_dir import locked_data_dir
from kafka_io.testing.listener import SocketListener
from kafka_io.testing.schema_registry.api import reply_to
from kafka_io.testing.schema_registry.faults import Client, Fault, Faults
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
        self.requests: list[str] = []
        """The method and path of all requests, such as `GET /subjects`."""
        self._faults = Faults()
        self._parts = ExitStack()
        self._listener: SocketListener | None = None
        self._store: SchemaStore | None = None
        self._stopping = threading.Event()

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
            self._listener = SocketListener(_HOST, self.port, name="schema-registry", tls=self.tls)
            parts.callback(self._listener.stop)
            parts.callback(self._stopping.set)
            self._listener.start(partial(_Handler, registry=self))
            self._parts = parts.pop_all()

    def close(self) -> None:
        """End all connections and stop listening. Calling it again does nothing."""
        self._parts.close()

    @property
    def url(self) -> str:
        """The base URL, after `start`."""
        assert self._listener is not None, "the registry has not been started"
        return f"http{'s' if self.tls else ''}://{_HOST}:{self._listener.port}"

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

    def answer(self, request: "_Handler", send: Callable[[bytes], object]) -> None:
        """Send the reply to a request, or the fault that is injected for its path."""
        path = request.path.partition("?")[0]
        self.requests.append(f"{request.command} {request.path}")
        self._faults.next(path)(self._reply(request, path), Client(send, self._stopping))

    def _reply(self, request: "_Handler", path: str) -> RegistryReply:
        length = request.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > _MAX_BODY_BYTES:
            return RegistryReply.of_error(413, 413, f"a request has at most {_MAX_BODY_BYTES} bytes")
        body = request.rfile.read(int(length))
        if self.authorization not in {None, request.headers.get("Authorization")}:
            return RegistryReply.of_error(401, 401, "Unauthorized")
        assert self._store is not None, "the registry has not been started"
        return reply_to(self._store, request.command, path, body)

    def run_foreground(self) -> None:
        """Run the registry until SIGTERM or SIGINT arrives, then stop it; see `stopping.run_foreground`."""
        run_foreground(self, lambda: f"penstock registry ready on {self.url}")

    def __enter__(self) -> Self:
        self.start()
        return self


class _Handler(BaseHTTPRequestHandler):
    """Reads one request and lets the registry answer it."""

    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S

    def __init__(self, client: socket.socket, registry: EmbeddedSchemaRegistry) -> None:
        self._registry = registry
        super().__init__(client, (_HOST, 0), registry)  # type: ignore[arg-type]  # the base class only keeps it

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Log what the base class prints."""
        logger.debug(format, *args)

    def _serve(self) -> None:
        self.close_connection = True
        self._registry.answer(self, self.wfile.write)

    do_GET = do_POST = do_PUT = _serve  # noqa: N815 - http.server looks them up by these names
