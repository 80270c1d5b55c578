"""Logins of HTTP: basic authentication and bearer tokens."""

import base64
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote_plus

from kafka_io.errors import AuthenticationFailed
from kafka_io.net.sasl.mechanisms import BEARER_TOKEN
from kafka_io.net.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLogin:
    """The header `Authorization` of a request. Its secrets are printed as `***`.

    Args:
        scheme: the first word of the header.
        secret: the secret as the user stores it.
        credentials: what follows the scheme; it contains the secret, possibly encoded.
    """

    scheme: str
    secret: Secret
    credentials: Secret

    @classmethod
    def basic(cls, username: str, password: Secret) -> Self:
        """User name and password (RFC 7617). Only TLS protects them."""
        encoded = base64.b64encode(username.encode() + b":" + password.reveal())
        return cls(scheme="Basic", secret=password, credentials=Secret(encoded))

    @classmethod
    def client_credentials(cls, client_id: str, secret: Secret) -> Self:
        """Id and secret of a client at a token server (RFC 6749, section 2.3.1): both are encoded for a form first."""
        encoded = b":".join((quote_plus(client_id).encode(), quote_plus(secret.reveal()).encode()))
        return cls(scheme="Basic", secret=secret, credentials=Secret(base64.b64encode(encoded)))

    @classmethod
    def bearer(cls, token: Secret) -> Self:
        """A token of another program (RFC 6750). Only TLS protects it.

        Raises:
            AuthenticationFailed: the token contains characters that end a header, or that no token has.
        """
        if not BEARER_TOKEN.fullmatch(token.reveal()):
            raise AuthenticationFailed("the token contains characters that bearer tokens cannot have")
        return cls(scheme="Bearer", secret=token, credentials=token)

    def header(self) -> bytes:
        """The header line. Pass it on directly: a local variable would appear in tracebacks with locals."""
        return b"Authorization: %s %s\r\n" % (self.scheme.encode(), self.credentials.reveal())

    def masked(self, text: str) -> str:
        """A text of the server for a log, without the secret in any form (fault X05)."""
        return self.credentials.masked(self.secret.masked(text))
