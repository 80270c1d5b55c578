"""SCRAM (RFC 5802, RFC 7677): both sides prove that they know the password, without sending it.

Names and passwords are used unchanged: unlike the RFC, Kafka does not apply SASLprep. A 3.9.1 broker whose user has a
password with a no-break space accepts exactly that, and refuses the plain space that SASLprep would make of it.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from typing import Literal

from kafka_io.errors import AuthenticationFailed
from kafka_io.net.sasl.authentication import Mechanism
from kafka_io.net.secret import Secret

ScramName = Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
# A leading `m=` would be a mandatory extension that we do not know. Optional ones may follow and are ignored.
_SERVER_FIRST = re.compile(rb"r=([!-+\--~]+),s=([A-Za-z0-9+/=]+),i=([1-9][0-9]{0,9})(?:,.*)?", re.DOTALL)
_SERVER_LAST = re.compile(rb"v=([A-Za-z0-9+/=]+)(?:,.*)?", re.DOTALL)
# RFC 7677 and Kafka demand at least 4096 iterations. More than the maximum keeps a core busy for seconds (fault X09).
_MIN_ITERATIONS = 4096
_MAX_ITERATIONS = 1_000_000
_NO_CHANNEL_BINDING = b"n,,"


class Scram(Mechanism):
    """The client's side of SCRAM. Only tests pass a `nonce`."""

    def __init__(self, name: ScramName, username: str, password: Secret, *, nonce: str | None = None) -> None:
        self.name = name
        self.secret = password
        self._hash = _HASHES[name]
        self._nonce = (nonce or secrets.token_urlsafe(24)).encode()
        self._bare = b"n=" + _escaped(username) + b",r=" + self._nonce
        self._expected = b""
        self._next: Callable[[bytes], bytes | None] = self._prove

    def first(self) -> bytes:
        """The user name and the client's part of the nonce."""
        return _NO_CHANNEL_BINDING + self._bare

    def answer(self, challenge: bytes) -> bytes | None:
        """The client's proof for the broker's salt; then None, once the broker's proof is verified."""
        return self._next(challenge)

    def _prove(self, challenge: bytes) -> bytes:
        nonce, salt, iterations = self._server_parameters(challenge)
        unproven = b"c=" + base64.b64encode(_NO_CHANNEL_BINDING) + b",r=" + nonce
        proof = self._proof(salt, iterations, b",".join((self._bare, challenge, unproven)))
        self._next = self._verify
        return unproven + b",p=" + base64.b64encode(proof)

    def _server_parameters(self, challenge: bytes) -> tuple[bytes, bytes, int]:
        """The broker's nonce, salt and iterations."""
        parts = _SERVER_FIRST.fullmatch(challenge)
        if parts is None:
            raise self._refused(challenge, "the broker's first message is not one of SCRAM")
        nonce, salt, iterations = parts[1], self._decoded(parts[2]), int(parts[3])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise self.failed("the broker's nonce does not continue ours")
        if not _MIN_ITERATIONS <= iterations <= _MAX_ITERATIONS:
            raise self.failed(
                f"the broker demands {iterations} iterations; {_MIN_ITERATIONS} to {_MAX_ITERATIONS} are accepted"
            )
        return nonce, salt, iterations

    def _proof(self, salt: bytes, iterations: int, messages: bytes) -> bytes:
        """The client's proof; the expected proof of the broker is kept.

        Nothing here raises an error, because a traceback with these locals would reveal the password.
        """
        salted = hashlib.pbkdf2_hmac(self._hash, self.secret.reveal(), salt, iterations)
        self._expected = self._hmac(self._hmac(salted, b"Server Key"), messages)
        key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, key).digest(), messages)
        return bytes(ours ^ theirs for ours, theirs in zip(key, signature, strict=True))

    def _verify(self, challenge: bytes) -> None:
        parts = _SERVER_LAST.fullmatch(challenge)
        if parts is None:
            raise self._refused(challenge, "the broker's last message is not one of SCRAM")
        if not hmac.compare_digest(self._decoded(parts[1]), self._expected):
            raise self.failed("the broker's proof is wrong: it does not know the password")
        self._next = self.end

    def _hmac(self, key: bytes, text: bytes) -> bytes:
        return hmac.digest(key, text, self._hash)

    def _decoded(self, text: bytes) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error:
            raise self.failed("a field of the broker's message is not base64") from None

    def _refused(self, challenge: bytes, otherwise: str) -> AuthenticationFailed:
        """The error for a challenge: with the broker's reason if it contains one."""
        if not challenge.startswith(b"e="):
            return self.failed(otherwise)
        return self.failed(f"the broker refuses us: {self.secret.masked(challenge[2:].decode('utf-8', 'replace'))}")


def _escaped(username: str) -> bytes:
    return username.replace("=", "=3D").replace(",", "=2C").encode()
