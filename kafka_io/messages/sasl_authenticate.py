"""SaslAuthenticate: one step of a login (KIP-152). v1 tells how long it holds (KIP-368)."""

from typing import ClassVar

from kafka_io.wire.schema import Api, Request, struct, wire
from kafka_io.wire.types import Int16, Int64, String, WireBytes


@struct
class SaslAuthenticateResponse:
    """The broker's bytes of the mechanism; `session_lifetime_ms` is 0 where the login does not end."""

    error_code: Int16
    error_message: String | None
    auth_bytes: WireBytes
    session_lifetime_ms: Int64 = wire(since=1, default=0, ignorable=True)  # KIP-368: log in again before it ends


@struct
class SaslAuthenticateRequest(Request[SaslAuthenticateResponse]):
    """The client's bytes of the mechanism."""

    API: ClassVar = Api(
        key=36, name="SaslAuthenticate", versions=(0, 2), flexible_from=2, answer=SaslAuthenticateResponse
    )

    auth_bytes: WireBytes
