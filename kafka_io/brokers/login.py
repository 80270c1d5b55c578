"""Logging in with SASL on a new connection, as the broker's version frames it (KIP-43, KIP-152)."""

from typing import Any

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, AuthenticationFailed, BrokerError
from kafka_io.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka_io.net.connection import Connection
from kafka_io.net.sasl.choosing import mechanism_of
from kafka_io.net.sasl.mechanism import authenticate
from kafka_io.net.security import Sasl
from kafka_io.wire.conversation import ApiVersionRanges, VersionedRequest

_FRAMED_SINCE = 1  # of SaslHandshake: before, the mechanism's bytes go bare


def log_in(connection: Connection[VersionedRequest[Any], Any], versions: ApiVersionRanges, sasl: Sasl) -> None:
    """Authenticate the connection.

    Raises:
        AuthenticationFailed: the broker refuses us, or does not prove itself.
        SecretMissing: the secret is not where the settings say.
        Unsupported: the broker has no SASL that we speak; before 0.10 none has.
        NetworkError: the connection broke; a broker before 1.0 refuses us so.
    """
    mechanism = mechanism_of(sasl)
    version = versions.pick(SaslHandshakeRequest.API)
    answer: SaslHandshakeResponse = connection.ask(
        VersionedRequest(SaslHandshakeRequest(mechanism=mechanism.name), version)
    )
    if answer.error_code:
        offered = ", ".join(answer.mechanisms) or "none"
        raise AuthenticationFailed(f"the broker does not take {mechanism.name}; it takes: {offered}")

    def ask(token: bytes) -> bytes:
        picked = versions.pick(SaslAuthenticateRequest.API)
        found: SaslAuthenticateResponse = connection.ask(
            VersionedRequest(SaslAuthenticateRequest(auth_bytes=token), picked)
        )
        if found.error_message:
            raise BrokerError(found.error_message, NOWHERE, found.error_code)
        ErrorCode.check(found.error_code, NOWHERE)
        return bytes(found.auth_bytes)

    authenticate(mechanism, ask if version >= _FRAMED_SINCE else connection.exchange)
