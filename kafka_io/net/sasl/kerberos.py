"""GSSAPI (RFC 4752): with Kerberos, both sides prove their identity, and no password crosses the network.

A Kafka broker offers no security layer: after the login, only TLS protects the data. The layers are still negotiated,
in the two messages that the RFC demands after the tokens of Kerberos. Kafka's brokers send a maximum size with their
offer, although the RFC demands zero of a server without a layer. The size is not compared, because no message uses it.
"""

from collections.abc import Callable
from typing import Protocol

from kafka_io.net.sasl.authentication import Mechanism
from kafka_io.net.secret import Secret

_NO_LAYER = 1  # bit of the security layer "none"
_OFFER_BYTES = 4  # a byte with the bits of the layers, and three bytes with the maximum size of a message
# No security layer, so that the maximum size is zero; and no other identity than the one of the ticket.
_CHOICE = bytes((_NO_LAYER, 0, 0, 0))
_MAX_TOKEN_BYTES = 64 * 1024  # a larger token is not given to the library


class GssContext(Protocol):
    """The state of one login, in the library for Kerberos. It raises errors of kafka_io only."""

    @property
    def is_established(self) -> bool:
        """Whether both sides have proven their identity."""

    def step(self, token: bytes | None) -> bytes:
        """The next token for the broker, which may be empty; `token` is the broker's, or None at first."""

    def unwrap(self, message: bytes) -> bytes:
        """The content of a message of the broker, whose signature is verified."""

    def wrap(self, content: bytes) -> bytes:
        """A signed message with this content."""


class Gssapi(Mechanism):
    """The client's side of GSSAPI."""

    name = "GSSAPI"
    secret = Secret(b"")  # the keys and tickets stay in the library

    def __init__(self, context: GssContext) -> None:
        self._context = context
        self._next: Callable[[bytes], bytes | None] = self._establish

    def first(self) -> bytes:
        """The ticket for the broker, and a proof that it belongs to us."""
        return self._context.step(None)

    def answer(self, challenge: bytes) -> bytes | None:
        """The next token of Kerberos; then the choice of a security layer; then None."""
        if len(challenge) > _MAX_TOKEN_BYTES:
            raise self.failed(f"the broker's token has {len(challenge)} bytes; up to {_MAX_TOKEN_BYTES} are accepted")
        return self._next(challenge)

    def _establish(self, challenge: bytes) -> bytes:
        token = self._context.step(challenge)
        if self._context.is_established:
            self._next = self._choose_layer
        elif not token:
            raise self.failed("the broker sent no proof of its identity")
        return token

    def _choose_layer(self, challenge: bytes) -> bytes:
        offer = self._context.unwrap(challenge)
        if len(offer) != _OFFER_BYTES:
            raise self.failed(f"the broker's offer of security layers has {len(offer)} bytes instead of {_OFFER_BYTES}")
        if not offer[0] & _NO_LAYER:
            raise self.failed(
                "the broker demands a security layer, which Kafka does not have; is this port one of Kafka?"
            )
        self._next, self.is_complete = self.end, True
        return self._context.wrap(_CHOICE)
