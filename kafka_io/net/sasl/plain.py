"""PLAIN (RFC 4616): name and password as they are. Only TLS keeps them from being read on the way."""

from kafka_io.errors import AuthenticationFailed
from kafka_io.net.secret import Secret


class Plain:
    """PLAIN for `username`."""

    name = "PLAIN"

    def __init__(self, username: str, password: Secret) -> None:
        self.secret = password
        self._username = username.encode()
        if b"\0" in self._username or b"\0" in password.reveal():
            raise AuthenticationFailed("PLAIN: a name or password that holds a NUL cannot be sent")

    def first(self) -> bytes:
        """NUL, name, NUL, password: the empty first part asks for no other identity."""
        return b"\0" + self._username + b"\0" + self.secret.reveal()

    def answer(self, challenge: bytes) -> None:
        """The broker has nothing to add."""
        if challenge:
            raise AuthenticationFailed("PLAIN: the broker asked for more than the mechanism has")
