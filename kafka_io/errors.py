"""All errors of kafka_io. Each has its location (cluster, broker, topic ...) as data.

Errors are pickled on their way from a Spark executor to the driver, so `args` must be enough to create them again.
The retry loop (kafka_io/brokers/retry.py) reads from `retriable` whether another attempt can help.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self, TypeVar

T = TypeVar("T")

_MAX_SHOWN = 200  # characters of a text of another program


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The location of an error. Unknown parts are None, and its text leaves them out.

    >>> str(Where(topic="clicks", partition=3, offset=7))
    'topic=clicks partition=3 offset=7'
    """

    cluster: str | None = None
    broker: str | None = None
    topic: str | None = None
    partition: str | int | None = None
    offset: int | None = None
    registry: str | None = None
    subject: str | None = None
    schema_id: int | None = None

    def at_offset(self, offset: int) -> "Where":
        """The same location at another offset."""
        return replace(self, offset=offset)

    def within(self, outer: "Where") -> "Where":
        """The same location with its unknown parts taken from `outer`."""
        return replace(outer, **self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """The known parts, in the order of the text."""
        known = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in known if value is not None}

    def __str__(self) -> str:
        parts = (f"{name}={printable(value)}" for name, value in self.as_dict().items())
        return " ".join(parts)


def printable(value: object) -> str:
    """A name or text of another program for an error: one short line without control characters (faults X05, H03).

    >>> printable("clicks"), printable("a b"), len(printable("x" * 100_000))
    ('clicks', "'a b'", 203)
    """
    text = str(value)
    if len(text) > _MAX_SHOWN:
        text = f"{text[:_MAX_SHOWN]}..."
    return text if text.isprintable() and " " not in text and text else repr(text)


def system_reason(error: OSError) -> str:
    """The reason of the operating system or of TLS, without error number, path and place in their code (fault U11).

    >>> system_reason(ConnectionRefusedError(111, "Connection refused")), system_reason(TimeoutError("timed out"))
    ('connection refused', 'no answer in time')
    """
    if isinstance(error, TimeoutError):
        return "no answer in time"
    tls_reason = getattr(error, "reason", None)  # of ssl.SSLError, such as WRONG_VERSION_NUMBER
    if isinstance(tls_reason, str):
        return tls_reason.lower().replace("_", " ")
    # The text of an error with a number of the system can be that of a library, such as pyarrow.
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or "without a reason"
    return reason[:1].lower() + reason[1:]


NOWHERE = Where()


class LocatedError(Exception):
    """An error with a reason, which is one sentence, and a location."""

    retriable: ClassVar[bool] = False

    def __init__(self, reason: str, where: Where = NOWHERE) -> None:
        super().__init__(reason, where)
        self.reason = reason
        self.where = where

    def with_context(self, where: Where) -> Self:
        """The same error with the unknown parts of its location taken from `where`."""
        return type(self)(self.reason, self.where.within(where), *self.args[2:])

    def __str__(self) -> str:
        location = str(self.where)
        return f"{self.reason} [{location}]" if location else self.reason


@contextmanager
def error_context(where: Where) -> Iterator[None]:
    """Add `where` to the location of every error that leaves the `with` block."""
    try:
        yield
    except LocatedError as error:
        raise error.with_context(where) from error.__cause__


class KafkaIOError(LocatedError):
    """The base class of all errors of kafka_io.

    >>> error = Corrupt("a checksum is wrong", Where(topic="clicks"))
    >>> str(error.with_context(Where(cluster="main"))), isinstance(error, KafkaIOError), error.retriable
    ('a checksum is wrong [cluster=main topic=clicks]', True, False)
    """


def value_of(answer: T | KafkaIOError) -> T:
    """The answer. If it is an error, that error is raised.

    >>> value_of(7)
    7
    """
    if isinstance(answer, KafkaIOError):
        raise answer
    return answer


class WireError(KafkaIOError):
    """The other side sent bytes that do not follow the protocol."""


class Truncated(WireError):
    """A structure ends before its last field."""


class Corrupt(WireError):
    """A checksum, length, count or offset is wrong."""


class PastEnd(Corrupt):
    """An answer contains records after the end of the log that it states.

    A genuine broker looks at the end of its log before it reads the records, so its answer can contain records that
    were written in between. Another answer shows whether this is the reason, or an offset is wrong.
    """

    retriable = True


class Unsupported(WireError):
    """A magic, codec, API version or generation is not supported."""


class TooLarge(WireError):
    """Data is larger than a limit; the reason names the setting that raises the limit."""


class NetworkError(KafkaIOError):
    """A broker or server could not be reached, closed the connection, or did not answer in time."""

    retriable = True


class ConnectFailed(NetworkError):
    """A connection could not be opened."""


class ConnectionLost(NetworkError):
    """The connection ended before the answer was complete."""


class DeadlineExceeded(NetworkError):
    """The answer was not complete before its deadline."""


class TokenServerUnavailable(NetworkError):
    """The server that gives tokens for logins cannot answer now; the same request can succeed later."""


class KdcUnreachable(NetworkError):
    """No server of Kerberos (KDC) answers; the same request can succeed later."""


class TlsFailed(KafkaIOError):
    """TLS failed: one side refuses the other's certificate, or they have no version of TLS in common."""


class AuthenticationFailed(KafkaIOError):
    """The server refused the login, or did not prove that it knows the secret."""


class KerberosTicketMissing(AuthenticationFailed):
    """This process has no ticket of Kerberos, or the ticket has expired."""


class KeytabUnusable(AuthenticationFailed):
    """The keytab cannot be read, or has no valid key of the principal."""


class KerberosClockSkew(AuthenticationFailed):
    """The clocks of this machine, the KDC and the broker differ by more than Kerberos accepts."""


class KerberosPrincipalUnknown(AuthenticationFailed):
    """The KDC does not know the principal of the client or of the broker, or does not accept it."""


class KerberosRealmUnknown(AuthenticationFailed):
    """The configuration of Kerberos (krb5.conf) is malformed, or does not describe the realm."""


class SecretMissing(KafkaIOError):
    """A secret does not exist where its reference says, on this machine."""


class BrokerError(KafkaIOError):
    """A broker answered with an error code; `code` is its number (see error_codes)."""

    def __init__(self, reason: str, where: Where = NOWHERE, code: int = -1) -> None:
        super().__init__(reason, where)
        self.args = (reason, where, code)
        self.code = code


class OffsetOutOfRange(BrokerError):
    """The broker's log does not contain the requested offset, or no longer."""


class BrokerBusy(BrokerError):
    """The broker cannot do it now; the same request can succeed later."""

    retriable = True


class Throttled(KafkaIOError):
    """The client's quota is used up, and the broker or server asks to wait for longer than is reasonable."""


class LeaderMoved(BrokerError):
    """The broker does not lead the partition: metadata must be requested again before the next attempt."""

    retriable = True


class CoordinatorMoved(BrokerError):
    """The broker does not coordinate the group or transaction: the coordinator must be looked up again."""

    retriable = True


class AuthorizationFailed(BrokerError):
    """The client is not authorized to do this."""


class LeaderChanged(KafkaIOError):
    """The log has records of a later leader than the one for which the range was planned: it must be planned again."""

    retriable = True


class LogShort(KafkaIOError):
    """The broker's log is shorter than it was before."""

    retriable = True


class TopicReplaced(KafkaIOError):
    """The topic was deleted and created again, so its offsets have another meaning now."""


class RegistryError(KafkaIOError):
    """The nodes of Kafka in ZooKeeper could not be read, or their contents are wrong."""


class RegistryUnavailable(RegistryError):
    """ZooKeeper did not answer. This never means that ZooKeeper is empty."""

    retriable = True


class NodeMalformed(RegistryError):
    """The name or value of a node in ZooKeeper has the wrong form."""


class InvalidValue(KafkaIOError):
    """A value cannot be encoded: it does not fit its schema."""


class SchemaRegistryError(KafkaIOError):
    """A schema registry refused a request, or its answer has the wrong form."""


class SchemaRegistryUnavailable(SchemaRegistryError):
    """The schema registry cannot answer now; the same request can succeed later."""

    retriable = True


class SchemaNotFound(SchemaRegistryError):
    """The schema registry does not know the id, subject or version.

    It is not retried, but it can change: schema registries copy ids from each other with a delay.
    """


class InvalidSchema(KafkaIOError):
    """A schema does not follow the rules of its language, or is too large to be a table's columns."""
