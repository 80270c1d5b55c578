"""Every error kafka_io raises: one family, each with the place it happened as data.

An error is rebuilt from its `args`, so it survives pickling from a Spark executor to the driver.
`retriable` tells the retry loop (kafka_io/brokers/retry.py) whether another attempt can help.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The place an error belongs to; unknown parts stay None and are left out of its text.

    >>> str(Where(topic="clicks", partition=3, offset=7))
    'topic=clicks partition=3 offset=7'
    """

    cluster: str | None = None
    broker: str | None = None
    topic: str | None = None
    partition: str | int | None = None
    offset: int | None = None

    def at_offset(self, offset: int) -> "Where":
        """The same place at another offset."""
        return replace(self, offset=offset)

    def within(self, outer: "Where") -> "Where":
        """The same place with its unknown parts taken from `outer`."""
        return replace(outer, **self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """The known parts, in the order they are read."""
        known = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in known if value is not None}

    def __str__(self) -> str:
        # Topic names come from the registry: repr keeps line ends and escape codes out of logs (fault X05).
        parts = (f"{name}={_plain(value)}" for name, value in self.as_dict().items())
        return " ".join(parts)


def _plain(value: object) -> str:
    text = str(value)
    return text if text.isprintable() and " " not in text and text else repr(text)


NOWHERE = Where()


class LocatedError(Exception):
    """What went wrong, in one sentence, and where."""

    retriable: ClassVar[bool] = False

    def __init__(self, reason: str, where: Where = NOWHERE) -> None:
        super().__init__(reason, where)
        self.reason = reason
        self.where = where

    def with_context(self, where: Where) -> Self:
        """The same error with the unknown parts of its place taken from `where`."""
        return type(self)(self.reason, self.where.within(where), *self.args[2:])

    def __str__(self) -> str:
        place = str(self.where)
        return f"{self.reason} [{place}]" if place else self.reason


@contextmanager
def error_context(where: Where) -> Iterator[None]:
    """Errors that leave this block know at least `where`: a layer adds what it knows of the place."""
    try:
        yield
    except LocatedError as error:
        raise error.with_context(where) from error.__cause__


class KafkaIOError(LocatedError):
    """The base of every error this package raises.

    >>> error = Corrupt("a checksum is wrong", Where(topic="clicks"))
    >>> str(error.with_context(Where(cluster="main"))), isinstance(error, KafkaIOError), error.retriable
    ('a checksum is wrong [cluster=main topic=clicks]', True, False)
    """


class WireError(KafkaIOError):
    """Bytes from the other side that do not follow the protocol."""


class Truncated(WireError):
    """A structure ends before all its fields are there."""


class Corrupt(WireError):
    """A checksum, length, count or offset that cannot be right."""


class PastEnd(Corrupt):
    """Records behind the end that the broker tells of its log in the same answer.

    Genuine brokers look at the end before they read: what is written meanwhile may be in the answer all the same. The
    next answer shows whether that is so, or an offset is wrong.
    """

    retriable = True


class Unsupported(WireError):
    """A magic, codec or generation that this version does not read."""


class TooLarge(WireError):
    """Something passed a cap; the sentence names the setting that raises it."""


class NetworkError(KafkaIOError):
    """A broker could not be reached, went away, or did not answer in time."""

    retriable = True


class ConnectFailed(NetworkError):
    """No connection could be made."""


class ConnectionLost(NetworkError):
    """The connection ended before the answer was whole."""


class DeadlineExceeded(NetworkError):
    """The answer was not whole when its deadline came."""


class TlsFailed(KafkaIOError):
    """No TLS connection with a proven broker: a certificate is refused, or the two sides have no TLS in common."""


class AuthenticationFailed(KafkaIOError):
    """The broker refused our name or secret, or did not prove that it knows the secret too."""


class SecretMissing(KafkaIOError):
    """A reference to a secret leads nowhere in this process."""


class BrokerError(KafkaIOError):
    """An error code in a broker's answer; `code` is its number (see error_codes)."""

    def __init__(self, reason: str, where: Where = NOWHERE, code: int = -1) -> None:
        super().__init__(reason, where)
        self.args = (reason, where, code)
        self.code = code


class OffsetOutOfRange(BrokerError):
    """The offset asked for is not, or no longer, in the broker's log."""


class BrokerBusy(BrokerError):
    """The broker cannot do it now; the same request may succeed a little later."""

    retriable = True


class LeaderMoved(BrokerError):
    """The broker that was asked does not lead what was asked for: metadata must be read again before the next try."""

    retriable = True


class CoordinatorMoved(BrokerError):
    """The broker that was asked does not coordinate this group or transaction: the coordinator must be found again."""

    retriable = True


class AuthorizationFailed(BrokerError):
    """Who asked is known to the broker and may not do this."""


class LogShort(KafkaIOError):
    """The broker's log ends where it was longer before."""

    retriable = True


class TopicReplaced(KafkaIOError):
    """The topic was deleted and made anew: its offsets are others now."""


class RegistryError(KafkaIOError):
    """ZooKeeper's registry could not be read, or holds something that cannot be right."""


class RegistryUnavailable(RegistryError):
    """ZooKeeper gave no answer. This is never the same as an empty registry."""

    retriable = True


class NodeMalformed(RegistryError):
    """A registry node whose value or name does not parse."""
