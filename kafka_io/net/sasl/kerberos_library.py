"""Tickets and security contexts of the system's library for Kerberos, by the package `gssapi` (an extra).

The library reads krb5.conf (KRB5_CONFIG) and asks the KDCs itself. How long it waits for a KDC is fixed in it: half a
minute for one that is silent. Tickets never leave the process: only settings are sent to workers.
"""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from kafka_io.errors import AuthenticationFailed, KdcUnreachable, KeytabUnusable, system_reason
from kafka_io.net.sasl.kerberos import GssContext
from kafka_io.net.sasl.kerberos_errors import kerberos_error
from kafka_io.net.secret import one_line
from kafka_io.net.security import Sasl

_DEFAULT_SERVICE = "kafka"
_USED_SHARE = 0.8  # of a ticket's lifetime (sasl.kerberos.ticket.renew.window.factor)
_KEYTAB_VERSION = b"\x05"  # the first byte of every keytab


def open_context(sasl: Sasl, host: str) -> GssContext:
    """A context for a login at the broker with this host name. It asks the KDC if it needs a ticket.

    Raises:
        AuthenticationFailed: the package is not installed, or there is no ticket: see the errors derived from it.
        KdcUnreachable: no KDC answers.
    """
    library = _library()
    service = f"{sasl.service_name or _DEFAULT_SERVICE}@{host}"
    subject = f"{sasl.principal or 'the user of this process'} at {service}"
    credentials = TICKETS.credentials(sasl) if sasl.keytab else None
    with _known_errors(library, subject):
        context = library.SecurityContext(
            name=library.Name(service, library.NameType.hostbased_service),
            creds=credentials or _cached_ticket(library, sasl),
            mech=library.MechType.kerberos,
            flags=library.RequirementFlag.mutual_authentication | library.RequirementFlag.integrity,
            usage="initiate",
        )
    return LibraryContext(library, context, subject)


class LibraryContext:
    """A security context of the library, with errors of kafka_io."""

    def __init__(self, library: Any, context: Any, subject: str) -> None:
        self._library = library
        self._context = context
        self._subject = subject

    @property
    def is_established(self) -> bool:
        """Whether both sides have proven their identity."""
        return bool(self._context.complete)

    def step(self, token: bytes | None) -> bytes:
        """The next token for the broker. The first one can need another ticket of the KDC, for this broker."""
        with _known_errors(self._library, self._subject):
            return self._context.step(token) or b""

    def unwrap(self, message: bytes) -> bytes:
        """The content of a message whose signature is that of the broker."""
        with _known_errors(self._library, self._subject):
            return bytes(self._context.unwrap(message).message)

    def wrap(self, content: bytes) -> bytes:
        """A signed message."""
        with _known_errors(self._library, self._subject):
            return bytes(self._context.wrap(content, encrypt=False).message)


class TicketCache:
    """The newest ticket that each keytab gave, for all threads of a process. It is in memory only."""

    def __init__(self, request: Callable[[Sasl], Any], clock: Callable[[], float] = time.monotonic) -> None:
        self._request = request
        self._clock = clock
        self._lock = Lock()
        self._tickets: dict[tuple[str | None, str | None], tuple[Any, float, float]] = {}

    def credentials(self, sasl: Sasl) -> Any:
        """Credentials that are valid for at least a fifth of their lifetime. If no KDC answers, older ones are used.

        The KDC is asked without the lock: it can take long, and a ticket that is requested twice does no harm.
        """
        key = (sasl.principal, sasl.keytab)
        with self._lock:
            kept, renewed_at, ends_at = self._tickets.get(key, (None, 0.0, 0.0))
        started = self._clock()
        if started < renewed_at:
            return kept
        try:
            credentials = self._request(sasl)
        except KdcUnreachable:
            if self._clock() < ends_at:
                return kept
            raise
        lifetime_s = float(credentials.lifetime or 0)
        with self._lock:
            self._tickets[key] = (credentials, started + lifetime_s * _USED_SHARE, started + lifetime_s)
        return credentials

    def forget(self, sasl: Sasl) -> None:
        """Drop the tickets of a keytab, because a broker refused them: the next login requests others."""
        with self._lock:
            self._tickets.pop((sasl.principal, sasl.keytab), None)


def _request_ticket(sasl: Sasl) -> Any:
    """Credentials with a new ticket, in a cache of their own, so that other logins can still use their older one."""
    library = _library()
    keytab, principal = str(sasl.keytab), str(sasl.principal)
    _check_keytab(Path(keytab))
    with _known_errors(library, f"{principal} with the keytab {keytab}", with_keytab=True):
        return library.Credentials(
            name=library.Name(principal, library.NameType.kerberos_principal),
            mechs=[library.MechType.kerberos],
            usage="initiate",
            store={"client_keytab": f"FILE:{keytab}", "ccache": f"MEMORY:penstock-{uuid.uuid4().hex}"},
        )


def _cached_ticket(library: Any, sasl: Sasl) -> Any:
    """Credentials with the ticket of the default cache (KRB5CCNAME), which is read again for each login."""
    name = library.Name(sasl.principal, library.NameType.kerberos_principal) if sasl.principal else None
    return library.Credentials(name=name, mechs=[library.MechType.kerberos], usage="initiate")


def _check_keytab(keytab: Path) -> None:
    """Check that the file is a keytab; the library only says that there is no ticket.

    Raises:
        KeytabUnusable: it is not, or cannot be read.
    """
    try:
        with keytab.open("rb") as file:
            start = file.read(1)
    except OSError as error:
        raise KeytabUnusable(f"GSSAPI: the keytab {keytab} cannot be read: {system_reason(error)}") from error
    if start != _KEYTAB_VERSION:
        raise KeytabUnusable(f"GSSAPI: the file {keytab} is not a keytab; correct `keytab`")


def _library() -> Any:
    """The package `gssapi`.

    Raises:
        AuthenticationFailed: it cannot be imported here.
    """
    try:
        import gssapi  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise AuthenticationFailed(
            f"GSSAPI: this process cannot import the package gssapi ({one_line(str(error))}): install libkrb5-dev and "
            "gcc, then `pip install 'penstock-etl[kerberos]'`, on each host that connects"
        ) from error
    return gssapi


@contextmanager
def _known_errors(library: Any, subject: str, *, with_keytab: bool = False) -> Iterator[None]:
    try:
        yield
    except library.exceptions.GSSError as error:
        raise kerberos_error(error, subject, with_keytab=with_keytab) from error


TICKETS = TicketCache(_request_ticket)
"""The tickets of this process."""
