"""One authentication, whichever mechanism it uses and however Kafka frames its tokens."""

from collections.abc import Callable
from typing import Protocol

from kafka_io.errors import AuthenticationFailed, BrokerError, ConnectionLost, KafkaIOError
from kafka_io.net.secret import Secret


class Mechanism(Protocol):
    """Our side of one authentication; it is used once."""

    @property
    def name(self) -> str:
        """As SaslHandshake names it."""
        ...

    @property
    def secret(self) -> Secret:
        """What must not be told."""
        ...

    def first(self) -> bytes:
        """What we say first."""
        ...

    def answer(self, challenge: bytes) -> bytes | None:
        """What we say next; None when the broker has said and proven all that it should.

        Raises:
            AuthenticationFailed: it has not, or refuses us.
        """
        ...


def authenticate(mechanism: Mechanism, ask: Callable[[bytes], bytes]) -> None:
    """Authenticate over `ask`, which carries a token to the broker and brings its answer.

    `ask` is a SaslAuthenticate request, or the bare frames of brokers before 1.0 (SaslHandshake 0); it raises
    BrokerError for an answer with an error code. Errors leave here made anew: the frames they came through hold tokens,
    and the errors they came from may.

    Raises:
        AuthenticationFailed: the broker refuses us or has not proven itself.
        KafkaIOError: whatever else `ask` raises.
    """
    failure = _failure(mechanism, ask)
    if failure is not None:
        raise failure


def _failure(mechanism: Mechanism, ask: Callable[[bytes], bytes]) -> KafkaIOError | None:
    try:
        challenge = ask(mechanism.first())
        while (token := mechanism.answer(challenge)) is not None:
            challenge = ask(token)
    except KafkaIOError as error:
        return _told(error, mechanism)
    return None


def _told(error: KafkaIOError, mechanism: Mechanism) -> KafkaIOError:
    reason = mechanism.secret.masked(error.reason)
    if isinstance(error, BrokerError):
        return AuthenticationFailed(f"{mechanism.name}: {reason}", error.where)
    if isinstance(error, ConnectionLost):  # all that a broker before 1.0 does about a wrong password
        reason = f"{reason}, while we authenticated: a broker before 1.0 refuses us so"
    return type(error)(reason, *error.args[1:])
