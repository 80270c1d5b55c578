"""Fakes of the library for Kerberos: a context that accepts one proof, and the package `gssapi` with such contexts.

A message is signed if it begins with `signed:`.
"""

from types import SimpleNamespace
from typing import Any

from kafka_io.errors import AuthenticationFailed

TICKET, PROOF = b"ticket", b"proof of the broker"
OFFER = b"signed:\x01\x01\x00\x00"
"""What a broker of 3.9.1 offers: no layer, and a maximum size all the same."""
CHOICE = b"signed:\x01\x00\x00\x00"
REFUSED = AuthenticationFailed(f"GSSAPI: {'a long sentence ' * 50}: the token is wrong")


class FakeContext:
    """A context of ours, without the library."""

    def __init__(self, answer_to_proof: bytes = b"", refusal: Exception = REFUSED) -> None:
        self.is_established = False
        self._answer_to_proof = answer_to_proof
        self._refusal = refusal

    def step(self, token: bytes | None) -> bytes:
        """The ticket, then nothing or `answer_to_proof`."""
        if token is None:
            return TICKET
        if token == b"unfinished":
            return b""
        if token != PROOF:
            raise self._refusal
        self.is_established = True
        return self._answer_to_proof

    def unwrap(self, message: bytes) -> bytes:
        """The content of a signed message."""
        if not message.startswith(b"signed:"):
            raise self._refusal
        return message.removeprefix(b"signed:")

    def wrap(self, content: bytes) -> bytes:
        """A signed message."""
        return b"signed:" + content


class FakeGssError(Exception):
    """A GSSError: its number and its text are those of MIT Kerberos."""

    def __init__(self, code: int, text: str = "reason") -> None:
        super().__init__(code, text)
        self.min_code = code % 2**32
        self._text = text

    def gen_message(self) -> str:
        """The text of both statuses."""
        return f"Major (851968): Unspecified GSS failure, Minor ({self.min_code}): {self._text}"


class FakeGssapi:
    """The package `gssapi`, as far as it is used. `requested` and `opened` have the arguments of its two classes."""

    exceptions = SimpleNamespace(GSSError=FakeGssError)
    NameType = SimpleNamespace(hostbased_service="service", kerberos_principal="principal")
    MechType = SimpleNamespace(kerberos="krb5")
    RequirementFlag = SimpleNamespace(mutual_authentication=2, integrity=32)

    def __init__(self, *, no_ticket: Exception | None = None) -> None:
        self.requested: list[dict[str, Any]] = []
        self.opened: list[dict[str, Any]] = []
        self._no_ticket = no_ticket

    def Name(self, text: str, kind: str) -> str:  # noqa: N802 - a class of the library
        """A name, as its text."""
        return f"{kind} {text}"

    def Credentials(self, **arguments: Any) -> Any:  # noqa: N802 - same
        """Credentials for 100 s."""
        self.requested.append(arguments)
        if self._no_ticket:
            raise self._no_ticket
        return SimpleNamespace(lifetime=100)

    def SecurityContext(self, **arguments: Any) -> "FakeGssapiContext":  # noqa: N802 - same
        """A context that accepts the proof of the broker."""
        self.opened.append(arguments)
        return FakeGssapiContext()


class FakeGssapiContext:
    """A context of the library."""

    def __init__(self) -> None:
        self._context = FakeContext(refusal=FakeGssError(-1765328353, "Decrypt integrity check failed"))

    @property
    def complete(self) -> bool:
        """Whether both sides have proven their identity."""
        return self._context.is_established

    def step(self, token: bytes | None) -> bytes | None:
        """The next token; None if there is none."""
        return self._context.step(token) or None

    def unwrap(self, message: bytes) -> Any:
        """The content of a message, and how it was protected."""
        return SimpleNamespace(message=self._context.unwrap(message), encrypted=False)

    def wrap(self, content: bytes, *, encrypt: bool) -> Any:
        """A message."""
        assert not encrypt
        return SimpleNamespace(message=self._context.wrap(content), encrypted=False)
