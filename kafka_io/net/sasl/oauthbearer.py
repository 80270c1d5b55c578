"""OAUTHBEARER (RFC 7628): a token that somebody else made, as it is. Only TLS keeps it from being read on the way."""

import json
import re
from typing import Any

from kafka_io.errors import AuthenticationFailed
from kafka_io.net.secret import Secret

# RFC 6750, 2.1; anything else could end the field, or the message.
_TOKEN = re.compile(rb"[A-Za-z0-9._~+/-]+=*")


class OAuthBearer:
    """OAUTHBEARER with `token`."""

    name = "OAUTHBEARER"

    def __init__(self, token: Secret) -> None:
        self.secret = token
        if not _TOKEN.fullmatch(token.reveal()):
            raise AuthenticationFailed("OAUTHBEARER: the token has letters that no bearer token has")

    def first(self) -> bytes:
        """A header without channel binding or other identity, then the token as HTTP would carry it."""
        return b"n,,\x01auth=Bearer " + self.secret.reveal() + b"\x01\x01"

    def answer(self, challenge: bytes) -> None:
        """The broker says nothing, or why it refuses; the RFC's empty answer to that would only bring another no."""
        if challenge:
            raise AuthenticationFailed(f"OAUTHBEARER: the broker refuses the token: {self._status(challenge)}")

    def _status(self, challenge: bytes) -> str:
        try:
            refused: Any = json.loads(challenge)
        except (ValueError, RecursionError):
            refused = None
        status = refused.get("status") if isinstance(refused, dict) else None
        return self.secret.masked(str(status)) if status else "it does not say why"
