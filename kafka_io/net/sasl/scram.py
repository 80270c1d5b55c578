"""SCRAM (RFC 5802, RFC 7677): both sides prove that they know the password, and neither says it.

Names and passwords are taken as they are: Kafka, against the RFC, does no SASLprep. A 3.9.1 whose user's password has a
no-break space lets in the one with that space, and not the one with the plain space that SASLprep makes of it.
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
from kafka_io.net.secret import Secret

ScramName = Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
# `m=` in front would be an extension that we must know; others may follow and are ignored.
_SERVER_FIRST = re.compile(rb"r=([!-+\--~]+),s=([A-Za-z0-9+/=]+),i=([1-9][0-9]{0,9})(?:,.*)?", re.DOTALL)
_SERVER_LAST = re.compile(rb"v=([A-Za-z0-9+/=]+)(?:,.*)?", re.DOTALL)
# RFC 7677 asks for 4096 at least, as Kafka does; more than the most keeps a core busy for seconds (X09).
_LEAST_ITERATIONS = 4096
_MOST_ITERATIONS = 1_000_000
_NO_CHANNEL_BINDING = b"n,,"


class Scram:
    """SCRAM for `username`; a `nonce` is given by tests only."""

    def __init__(self, name: ScramName, username: str, password: Secret, *, nonce: str | None = None) -> None:
        self.name = name
        self.secret = password
        self._hash = _HASHES[name]
        self._nonce = (nonce or secrets.token_urlsafe(24)).encode()
        self._bare = b"n=" + _escaped(username) + b",r=" + self._nonce
        self._expected = b""
        self._next: Callable[[bytes], bytes | None] = self._prove

    def first(self) -> bytes:
        """Our name and our part of the nonce."""
        return _NO_CHANNEL_BINDING + self._bare

    def answer(self, challenge: bytes) -> bytes | None:
        """Our proof for the broker's salt; then None for the broker's own proof."""
        return self._next(challenge)

    def _prove(self, challenge: bytes) -> bytes:
        nonce, salt, iterations = self._salted_by(challenge)
        unproven = b"c=" + base64.b64encode(_NO_CHANNEL_BINDING) + b",r=" + nonce
        proof = self._proof(salt, iterations, b",".join((self._bare, challenge, unproven)))
        self._next = self._verify
        return unproven + b",p=" + base64.b64encode(proof)

    def _salted_by(self, challenge: bytes) -> tuple[bytes, bytes, int]:
        """The broker's nonce, salt and iterations."""
        parts = _SERVER_FIRST.fullmatch(challenge)
        if parts is None:
            raise self._refused(challenge, "the broker's first message is none of the mechanism")
        nonce, salt, iterations = parts[1], self._decoded(parts[2]), int(parts[3])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise self._failed("the broker's nonce does not continue ours")
        if not _LEAST_ITERATIONS <= iterations <= _MOST_ITERATIONS:
            raise self._failed(f"{iterations} iterations; {_LEAST_ITERATIONS} to {_MOST_ITERATIONS} are taken")
        return nonce, salt, iterations

    def _proof(self, salt: bytes, iterations: int, said: bytes) -> bytes:
        """The client's proof; the broker's is kept to compare. Nothing here raises: the locals are worth a password."""
        salted = hashlib.pbkdf2_hmac(self._hash, self.secret.reveal(), salt, iterations)
        self._expected = self._hmac(self._hmac(salted, b"Server Key"), said)
        key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, key).digest(), said)
        return bytes(ours ^ theirs for ours, theirs in zip(key, signature, strict=True))

    def _verify(self, challenge: bytes) -> None:
        parts = _SERVER_LAST.fullmatch(challenge)
        if parts is None:
            raise self._refused(challenge, "the broker's last message is none of the mechanism")
        if not hmac.compare_digest(self._decoded(parts[1]), self._expected):
            raise self._failed("the broker's proof is wrong: it does not know the password")
        self._next = self._no_more

    def _no_more(self, challenge: bytes) -> None:
        raise self._failed(f"{len(challenge)} bytes more than the mechanism has")

    def _hmac(self, key: bytes, text: bytes) -> bytes:
        return hmac.digest(key, text, self._hash)

    def _decoded(self, text: bytes) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error:
            raise self._failed("the broker's message is not base64 where it should be") from None

    def _refused(self, challenge: bytes, otherwise: str) -> AuthenticationFailed:
        """The broker's own reason, if the challenge is one."""
        if not challenge.startswith(b"e="):
            return self._failed(otherwise)
        return self._failed(f"the broker refuses us: {self.secret.masked(challenge[2:].decode('utf-8', 'replace'))}")

    def _failed(self, reason: str) -> AuthenticationFailed:
        return AuthenticationFailed(f"{self.name}: {reason}")


def _escaped(username: str) -> bytes:
    return username.replace("=", "=3D").replace(",", "=2C").encode()
