"""The session of one client of a broker from 0.8 on: it reads a request, answers it, and reads the next one."""

import logging
import socket
from struct import Struct
from typing import Any

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import Unsupported
from kafka_io.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kafka_io.testing.client_session import ClientSession
from kafka_io.testing.modern.handlers import HANDLERS, ApiHandlers
from kafka_io.testing.modern.node import BrokerNode, Caller
from kafka_io.wire.conversation import ReceivedRequest, received
from kafka_io.wire.framing import Frames

logger = logging.getLogger(__name__)

# int16 API key | int16 version | int32 correlation id
_HEADER = Struct(">hhi")
_FIRST_VERSION = 0  # the version of ApiVersions that every client can read (KIP-511)


class ModernSession(ClientSession):
    """Serves one client with the APIs of a generation from 0.8 on."""

    def __init__(self, client: socket.socket, node: BrokerNode, handlers: ApiHandlers) -> None:
        super().__init__(client, send_timeout_ms=node.config.send_timeout_ms)
        self._node = node
        self._request_types = handlers.requests
        self._versions = handlers.versions_by_key
        self._frames = Frames(smallest=_HEADER.size, largest=lambda: node.config.max_request_bytes)
        self._host: str = client.getpeername()[0]

    def _step(self) -> bool:
        count = self._client.recv_into(self._frames.space())
        frame = self._frames.filled(count) if count else None
        if frame is not None and (answer := self._answer(frame)):
            self._client.sendall(answer)
        return count > 0

    def _answer(self, frame: memoryview) -> bytes | None:
        """The bytes of the answer; None if the client expects no answer.

        Raises:
            WireError: the request is invalid, or this generation does not support it. The connection must be closed.
        """
        key, version, correlation = _HEADER.unpack_from(frame)
        first, last = self._versions.get(key, (0, -1))
        if key == ApiVersionsRequest.API.key and version > last >= first:
            return self._refuse_version(correlation)
        if not first <= version <= last:
            raise Unsupported(f"the broker does not support version {version} of API {key}")
        received_request = received(frame, self._request_types)
        answer = self._handle(received_request)
        return None if answer is None else received_request.answered(answer)

    def _handle(self, received_request: ReceivedRequest) -> Any:
        request = received_request.request
        if isinstance(request, ApiVersionsRequest):
            return self._api_versions(ErrorCode.NONE)
        caller = Caller(client_id=received_request.client_id or "", host=self._host, version=received_request.version)
        return HANDLERS[type(request)](request, self._node, caller)

    def _refuse_version(self, correlation: int) -> bytes:
        """The answer to an ApiVersions request of a version that is too new.

        The client cannot know the versions of the broker yet. So it gets them in the first version, together with an
        error code, and asks again (KIP-511). For all other APIs the connection is closed.
        """
        request = ApiVersionsRequest()
        received_request = ReceivedRequest(
            api=request.API, version=_FIRST_VERSION, correlation=correlation, client_id=None, request=request
        )
        return received_request.answered(self._api_versions(ErrorCode.UNSUPPORTED_VERSION))

    def _api_versions(self, code: ErrorCode) -> ApiVersionsResponse:
        """The versions of each API that this broker supports (KIP-35)."""
        rows = (
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in self._versions.items()
        )
        return ApiVersionsResponse(error_code=code, api_keys=tuple(rows))
