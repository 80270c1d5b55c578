"""A SCRAM server, written only from RFC 5802: section 3 has the algorithm, section 7 the messages."""

import base64
import hmac
from hashlib import new
from typing import Any


class ScramServer:
    """A server with one user. `first` and `last` take a message of the client and return the answer.

    `digest` is the name of a hash in hashlib.
    """

    def __init__(self, digest: str, username: str, password: str, *, salt: bytes, iterations: int, nonce: str) -> None:
        self._digest = digest
        self._username = username
        self._salted = self._hi(password.encode(), salt, iterations)
        self._salt = base64.b64encode(salt).decode()
        self._iterations = iterations
        self._nonce = nonce
        self._first_messages: list[str] = []
        self.authenticated = False

    def first(self, message: bytes) -> bytes:
        """Answer a client-first-message without channel binding with a server-first-message."""
        header, identity, bare = message.decode().split(",", 2)
        assert (header, identity) == ("n", "")
        fields = self._fields(bare)
        assert fields["n"].replace("=2C", ",").replace("=3D", "=") == self._username
        self._nonce = fields["r"] + self._nonce
        self._first_messages = [bare, f"r={self._nonce},s={self._salt},i={self._iterations}"]
        return self._first_messages[1].encode()

    def last(self, message: bytes) -> bytes:
        """Answer a client-final-message with a server-final-message: the server's signature, or an error."""
        without_proof, _, proof = message.decode().rpartition(",p=")
        assert self._fields(without_proof) == {"c": "biws", "r": self._nonce}
        auth_message = ",".join([*self._first_messages, without_proof]).encode()
        stored_key = new(self._digest, self._hmac(self._salted, b"Client Key")).digest()
        client_key = self._xor(base64.b64decode(proof), self._hmac(stored_key, auth_message))
        if new(self._digest, client_key).digest() != stored_key:
            return b"e=invalid-proof"
        self.authenticated = True
        return b"v=" + base64.b64encode(self._hmac(self._hmac(self._salted, b"Server Key"), auth_message))

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
