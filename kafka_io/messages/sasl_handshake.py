"""SaslHandshake: the mechanism of a login. After v0 the login's bytes go bare, after v1 in SaslAuthenticate."""

from typing import ClassVar

from kafka_io.wire.schema import NEVER, Api, Request, struct
from kafka_io.wire.types import Int16, String


@struct
class SaslHandshakeResponse:
    """The mechanisms that the broker has."""

    error_code: Int16
    mechanisms: tuple[String, ...]


@struct
class SaslHandshakeRequest(Request[SaslHandshakeResponse]):
    """The mechanism to log in with."""

    API: ClassVar = Api(
        key=17, name="SaslHandshake", versions=(0, 1), flexible_from=NEVER, answer=SaslHandshakeResponse
    )

    mechanism: String
