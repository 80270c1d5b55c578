"""Authenticates with any mechanism, independently of how Kafka frames its tokens."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from kafka_io.errors import AuthenticationFailed, BrokerError, ConnectionLost, KafkaIOError
from kafka_io.net.secret import Secret


class Mechanism(ABC):
    """The client's side of one authentication. It is used once."""

    name: str
    """The name of the mechanism in SaslHandshake."""

    secret: Secret
    """The secret, which must not appear in messages."""

    is_complete = False
    """Whether the newest token is the last one, and the broker sends no token in return (GSSAPI)."""

    @abstractmethod
    def first(self) -> bytes:
        """The first token of the client."""

    @abstractmethod
    def answer(self, challenge: bytes) -> bytes | None:
        """The next token of the client; None when the broker has proven everything that the mechanism demands.

        Raises:
            AuthenticationFailed: the broker refuses us, or its proof is missing or wrong.
        """

    def failed(self, reason: str) -> AuthenticationFailed:
        """The error for a failure of this mechanism."""
        return AuthenticationFailed(f"{self.name}: {reason}")

    def end(self, challenge: bytes) -> None:
        """The answer to a challenge after the last token: there must be none."""
        if challenge:
            raise self.failed(f"the broker sent {len(challenge)} bytes after the end of the mechanism")


def authenticate(
    mechanism: Mechanism,
    exchange: Callable[[bytes], bytes],
    *,
    send_last: Callable[[bytes], None] | None = None,
) -> None:
    """Authenticate over `exchange`, which sends a token to the broker and returns its answer.

    This function raises new errors without a cause: the stack frames and the original errors can contain tokens.

    Args:
        mechanism: the client's side.
        exchange: a SaslAuthenticate request, or bare frames for brokers before 1.0 (SaslHandshake v0). It raises
            BrokerError for an answer with an error code.
        send_last: only for bare frames: sends a token without waiting, because the broker answers the last token of
            some mechanisms with nothing, not even an empty frame.

    Raises:
        AuthenticationFailed: the broker refuses us, or did not prove its identity.
        KafkaIOError: any other error of `exchange`.
    """
    failure = _failure(mechanism, exchange, send_last)
    if failure is not None:
        raise failure


def _failure(
    mechanism: Mechanism, exchange: Callable[[bytes], bytes], send_last: Callable[[bytes], None] | None
) -> KafkaIOError | None:
    try:
        challenge = exchange(mechanism.first())
        while (token := mechanism.answer(challenge)) is not None:
            if mechanism.is_complete and send_last is not None:
                send_last(token)
                return None
            challenge = exchange(token)
    except KafkaIOError as error:
        return _without_secret(error, mechanism)
    return None


def _without_secret(error: KafkaIOError, mechanism: Mechanism) -> KafkaIOError:
    # Without a secret, only the text of a broker must be cut: all other reasons are sentences of ours.
    is_ours = not mechanism.secret.reveal() and not isinstance(error, BrokerError)
    reason = error.reason if is_ours else mechanism.secret.masked(error.reason)
    if isinstance(error, BrokerError):
        return mechanism.failed(reason).with_context(error.where)
    if isinstance(error, ConnectionLost):  # a broker before 1.0 only closes for a wrong password
        reason = f"{reason} during authentication; a broker before 1.0 refuses a login in this way"
    return type(error)(reason, *error.args[1:])
