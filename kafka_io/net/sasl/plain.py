"""PLAIN (RFC 4616): sends name and password unencrypted. Only TLS protects them on their way."""

from kafka_io.errors import AuthenticationFailed
from kafka_io.net.secret import Secret


class Plain:
    """The client's side of PLAIN."""

    name = "PLAIN"

    def __init__(self, username: str, password: Secret) -> None:
        self.secret = password
        self._username = username.encode()
        if b"\0" in self._username or b"\0" in password.reveal():
            raise AuthenticationFailed("PLAIN: the name or password contains a NUL character, which cannot be sent")

    def first(self) -> bytes:
        """NUL, name, NUL, password. The empty first part requests no other identity."""
        return b"\0" + self._username + b"\0" + self.secret.reveal()

    def answer(self, challenge: bytes) -> None:
        """Check that the broker's answer is empty."""
        if challenge:
            raise AuthenticationFailed("PLAIN: the broker requests another step, but the mechanism has none")
