"""SaslHandshake chooses the mechanism of a login (KIP-43), SaslAuthenticate carries its bytes (KIP-152).

After SaslHandshake v0 the bytes follow without any header, after v1 as SaslAuthenticate requests.
"""

from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Int16, Int64, String, WireBytes


class SaslHandshakeResponse(Struct):
    """The mechanisms that the broker supports."""

    error_code: Int16
    mechanisms: tuple[String, ...]


class SaslHandshakeRequest(Request[SaslHandshakeResponse], key=17, versions=(0, 1)):
    """The mechanism of the login."""

    mechanism: String


class SaslAuthenticateResponse(Struct):
    """The broker's bytes of the mechanism; `session_lifetime_ms` is 0 if the login does not expire."""

    error_code: Int16
    error_message: String | None
    auth_bytes: WireBytes
    session_lifetime_ms: Int64 = wire(since=1, default=0, ignorable=True)  # KIP-368: log in again before it ends


class SaslAuthenticateRequest(Request[SaslAuthenticateResponse], key=36, versions=(0, 2), flexible_from=2):
    """The client's bytes of the mechanism."""

    auth_bytes: WireBytes
