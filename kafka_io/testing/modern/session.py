"""The sessions of clients of a broker from 0.8 on: a session reads a request, answers it, and reads the next one."""

import socket
from collections.abc import Mapping
from struct import Struct
from typing import Any

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import Unsupported
from kafka_io.messages.handshake import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kafka_io.testing.client_session import serve_frames
from kafka_io.testing.modern.handlers import HANDLERS
from kafka_io.testing.modern.node import BrokerNode, Caller
from kafka_io.wire.conversation import ReceivedRequest, received
from kafka_io.wire.framing import Frames
from kafka_io.wire.schema import Request

# int16 API key | int16 version | int32 correlation id
_HEADER = Struct(">hhi")
_FIRST_VERSION = 0  # the version of ApiVersions that every client can read (KIP-511)


class ModernSessions:
    """Serves the sessions of all clients, with the APIs of a generation from 0.8 on.

    Args:
        node: the parts of the broker.
        versions: the first and last version of each supported request.
    """

    def __init__(self, node: BrokerNode, versions: Mapping[type[Request[Any]], tuple[int, int]]) -> None:
        self._node = node
        self._request_types = {request_type.API.key: request_type for request_type in versions}
        self._versions = {request_type.API.key: range_ for request_type, range_ in versions.items()}

    def serve(self, client: socket.socket) -> None:
        """Serve one client until it disconnects, or violates the protocol."""
        host: str = client.getpeername()[0]

        def answer(frame: memoryview) -> None:
            if data := self._answer(frame, host):
                client.sendall(data)

        config = self._node.config
        frames = Frames(min_size=_HEADER.size, max_size=lambda: config.max_request_bytes)
        serve_frames(client, frames, answer, send_timeout_ms=config.send_timeout_ms)

    def _answer(self, frame: memoryview, host: str) -> bytes | None:
        """The bytes of the answer; None if the client expects no answer.

        Raises:
            WireError: the request is invalid, or this generation does not support it. The connection must be closed.
        """
        key, version, correlation = _HEADER.unpack_from(frame)
        first, last = self._versions.get(key, (0, -1))
        if key == ApiVersionsRequest.API.key and version > last >= first:
            # The client cannot know the versions of the broker yet. So it gets them in the first version, together with
            # an error code, and asks again (KIP-511). For all other APIs the connection is closed.
            in_first_version = ReceivedRequest(
                api=ApiVersionsRequest.API,
                version=_FIRST_VERSION,
                correlation=correlation,
                client_id=None,
                request=ApiVersionsRequest(),
            )
            return in_first_version.answered(self._api_versions(ErrorCode.UNSUPPORTED_VERSION))
        if not first <= version <= last:
            raise Unsupported(f"the broker does not support version {version} of API {key}")
        received_request = received(frame, self._request_types)
        request = received_request.request
        if isinstance(request, ApiVersionsRequest):
            return received_request.answered(self._api_versions(ErrorCode.NONE))
        caller = Caller(client_id=received_request.client_id or "", host=host, version=version)
        answer = HANDLERS[type(request)](request, self._node, caller)
        return None if answer is None else received_request.answered(answer)

    def _api_versions(self, code: ErrorCode) -> ApiVersionsResponse:
        """The versions of each API that this broker supports (KIP-35)."""
        rows = (
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in self._versions.items()
        )
        return ApiVersionsResponse(error_code=code, api_keys=tuple(rows))
