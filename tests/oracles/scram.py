"""A SCRAM server, written from RFC 5802 alone: section 3 for the algorithm, section 7 for the messages."""

import base64
import hmac
from hashlib import new
from typing import Any


class ScramServer:
    """Knows one user. `first` and `last` take the client's messages and give the server's.

    `digest` is a name of hashlib.
    """

    def __init__(self, digest: str, username: str, password: str, *, salt: bytes, iterations: int, nonce: str) -> None:
        self._digest = digest
        self._username = username
        self._salted = self._hi(password.encode(), salt, iterations)
        self._salt = base64.b64encode(salt).decode()
        self._iterations = iterations
        self._nonce = nonce
        self._said: list[str] = []
        self.authenticated = False

    def first(self, message: bytes) -> bytes:
        """server-first-message, to a client-first-message without channel binding."""
        header, identity, bare = message.decode().split(",", 2)
        assert (header, identity) == ("n", "")
        fields = self._fields(bare)
        assert fields["n"].replace("=2C", ",").replace("=3D", "=") == self._username
        self._nonce = fields["r"] + self._nonce
        self._said = [bare, f"r={self._nonce},s={self._salt},i={self._iterations}"]
        return self._said[1].encode()

    def last(self, message: bytes) -> bytes:
        """server-final-message, to a client-final-message: our signature, or why not."""
        unproven, _, proof = message.decode().rpartition(",p=")
        assert self._fields(unproven) == {"c": "biws", "r": self._nonce}
        said = ",".join([*self._said, unproven]).encode()
        stored = new(self._digest, self._hmac(self._salted, b"Client Key")).digest()
        key = self._xor(base64.b64decode(proof), self._hmac(stored, said))
        if new(self._digest, key).digest() != stored:
            return b"e=invalid-proof"
        self.authenticated = True
        return b"v=" + base64.b64encode(self._hmac(self._hmac(self._salted, b"Server Key"), said))

    def _hi(self, text: bytes, salt: bytes, iterations: int) -> bytes:
        total = round_ = self._hmac(text, salt + b"\0\0\0\1")
        for _ in range(iterations - 1):
            round_ = self._hmac(text, round_)
            total = self._xor(total, round_)
        return total

    def _hmac(self, key: bytes, text: bytes) -> bytes:
        return hmac.new(key, text, self._digest).digest()

    @staticmethod
    def _xor(left: bytes, right: bytes) -> bytes:
        return bytes(byte ^ other for byte, other in zip(left, right, strict=True))

    @staticmethod
    def _fields(message: str) -> dict[str, Any]:
        return dict(field.split("=", 1) for field in message.split(","))
