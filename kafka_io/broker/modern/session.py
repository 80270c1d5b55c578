"""One client of a broker from 0.8 on: a request, its answer, and then the next request."""

import logging
import socket
from struct import Struct
from typing import Any

from kafka_io.broker.client_session import ClientSession
from kafka_io.broker.modern.apis.api_versions import api_versions
from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.dialect import HANDLERS, Dialect
from kafka_io.broker.modern.node import Caller, Node
from kafka_io.errors import Unsupported
from kafka_io.messages.api_versions import ApiVersionsRequest
from kafka_io.wire.conversation import Received, received
from kafka_io.wire.framing import Frames

logger = logging.getLogger(__name__)

# int16 api | int16 version | int32 correlation
_HEAD = Struct(">hhi")
_PLAINEST = 0  # the version of ApiVersions that every client reads (KIP-511)


class ModernSession(ClientSession):
    """Serves one socket in a dialect from 0.8 on."""

    def __init__(self, client: socket.socket, node: Node, dialect: Dialect) -> None:
        super().__init__(client, send_timeout_ms=node.config.send_timeout_ms)
        self._node = node
        self._dialect = dialect
        self._offered = dialect.offered
        self._frames = Frames(smallest=_HEAD.size, largest=lambda: node.config.max_request_bytes)
        self._host: str = client.getpeername()[0]

    def _step(self) -> bool:
        count = self._client.recv_into(self._frames.space())
        frame = self._frames.filled(count) if count else None
        if frame is not None and (answer := self._answer(frame)):
            self._client.sendall(answer)
        return count > 0

    def _answer(self, frame: memoryview) -> bytes | None:
        """The bytes to send back, None where nobody waits for any.

        Raises:
            WireError: the request is none that this dialect has; the connection must be closed.
        """
        key, version, correlation = _HEAD.unpack_from(frame)
        first, last = self._offered.get(key, (0, -1))
        if key == ApiVersionsRequest.API.key and version > last >= first:
            return self._refuse_version(correlation)
        if not first <= version <= last:
            raise Unsupported(f"version {version} of the API with number {key}")
        asked = received(frame, self._dialect.requests)
        answer = self._handled(asked)
        return None if answer is None else asked.answered(answer)

    def _handled(self, asked: Received) -> Any:
        if isinstance(asked.request, ApiVersionsRequest):
            return api_versions(self._offered)
        caller = Caller(client_id=asked.client_id or "", host=self._host, version=asked.version)
        return HANDLERS[type(asked.request)](asked.request, self._node, caller)

    def _refuse_version(self, correlation: int) -> bytes:
        """A client that is newer than we are learns in the plainest version what it may speak."""
        request = ApiVersionsRequest()
        asked = Received(api=request.API, version=_PLAINEST, correlation=correlation, client_id=None, request=request)
        return asked.answered(api_versions(self._offered, Code.UNSUPPORTED_VERSION))
