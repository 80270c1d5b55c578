"""OAUTHBEARER (RFC 7628): sends a token that another program created. Only TLS protects it on its way."""

import json
import re
from typing import Any

from kafka_io.errors import AuthenticationFailed
from kafka_io.net.secret import Secret

# RFC 6750, section 2.1. Other characters could end the field or the message.
_TOKEN = re.compile(rb"[A-Za-z0-9._~+/-]+=*")


class OAuthBearer:
    """The client's side of OAUTHBEARER."""

    name = "OAUTHBEARER"

    def __init__(self, token: Secret) -> None:
        self.secret = token
        if not _TOKEN.fullmatch(token.reveal()):
            raise AuthenticationFailed("OAUTHBEARER: the token contains characters that bearer tokens cannot have")

    def first(self) -> bytes:
        """A header without channel binding and without another identity, then the token in the form of HTTP."""
        return b"n,,\x01auth=Bearer " + self.secret.reveal() + b"\x01\x01"

    def answer(self, challenge: bytes) -> None:
        """Check the broker's answer: it is empty, or contains the reason of a refusal.

        The RFC's empty reply to a refusal is not sent, because it only leads to another refusal.
        """
        if challenge:
            raise AuthenticationFailed(f"OAUTHBEARER: the broker refuses the token: {self._status(challenge)}")

    def _status(self, challenge: bytes) -> str:
        try:
            fields: Any = json.loads(challenge)
        except (ValueError, RecursionError):
            fields = None
        status = fields.get("status") if isinstance(fields, dict) else None
        return self.secret.masked(str(status)) if status else "the broker gives no reason"
