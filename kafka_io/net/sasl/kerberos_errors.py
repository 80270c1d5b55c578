"""Translates the errors of the library for Kerberos into errors of kafka_io, with a sentence about what to do.

The numbers are those of MIT Kerberos (krb5.h, the table `krb5`). The GSS interface passes them on as the minor status,
without a sign.
"""

from dataclasses import dataclass
from typing import Any

from kafka_io.errors import (
    AuthenticationFailed,
    KafkaIOError,
    KdcUnreachable,
    KerberosClockSkew,
    KerberosPrincipalUnknown,
    KerberosRealmUnknown,
    KerberosTicketMissing,
    KeytabUnusable,
)
from kafka_io.net.secret import one_line

_KRB5_TABLE = 2**32 - 1765328384


@dataclass(frozen=True, slots=True)
class _Meaning:
    kind: type[KafkaIOError]
    sentence: str


_CLOCK = _Meaning(
    KerberosClockSkew,
    "the clocks of this machine, the KDC and the broker differ too much; synchronise them with NTP",
)
_CLIENT = _Meaning(
    KerberosPrincipalUnknown, "the KDC does not accept the principal of the client; correct `principal`, or enable it"
)
_EXPIRED = _Meaning(
    KerberosTicketMissing,
    "the ticket has expired; run `kinit` as the user of this process, or set `keytab` and `principal` in `sasl`",
)
_NO_TICKET = _Meaning(
    KerberosTicketMissing,
    "this process has no ticket; run `kinit` as its user, or set `keytab` and `principal` in `sasl`",
)
_REALM = _Meaning(
    KerberosRealmUnknown,
    "krb5.conf does not say where the KDC of the realm is; correct it, or set KRB5_CONFIG to the right file",
)
_MEANINGS = {
    1: _CLIENT,  # the entry of the client has expired
    6: _CLIENT,
    7: _Meaning(
        KerberosPrincipalUnknown,
        "the KDC does not know the principal of the broker; correct `service_name`, or let the settings and the broker "
        "use the host name of its principal",
    ),
    18: _CLIENT,  # revoked or locked
    23: _CLIENT,  # its password has expired
    32: _EXPIRED,
    37: _CLOCK,
    135: _Meaning(KerberosRealmUnknown, "krb5.conf cannot be read; let this user read it, or correct KRB5_CONFIG"),
    136: _Meaning(KerberosRealmUnknown, "krb5.conf is malformed; correct it"),
    141: _NO_TICKET,
    148: _CLOCK,
    154: _REALM,
    156: _Meaning(
        KdcUnreachable, "no KDC of the realm answers; start it, open the firewall, or correct `kdc` in krb5.conf"
    ),
    194: _NO_TICKET,  # the user of this process may not read the ticket cache
    195: _NO_TICKET,
    217: _REALM,
    220: _REALM,
    224: _Meaning(
        KerberosRealmUnknown,
        "krb5.conf has no `default_realm`; set it, write the realm into `principal`, or set KRB5_CONFIG to the right "
        "file",
    ),
}
_OLD_KEY = _Meaning(
    KeytabUnusable, "the key in the keytab is not that of the KDC; let the administrator write a new `keytab`"
)
_NO_KEY = _Meaning(
    KeytabUnusable, "the keytab has no key of the principal; `klist -k` shows the principals that it has"
)
# The meanings when a ticket is requested with a keytab. If it has no key of the principal, the library looks for a
# ticket instead, in the empty cache of the login.
_WITH_KEYTAB = {24: _OLD_KEY, 31: _OLD_KEY, 141: _NO_KEY, 181: _NO_KEY, 195: _NO_KEY}
_OTHER = _Meaning(
    AuthenticationFailed, "Kerberos refuses the login; KRB5_TRACE=/dev/stderr in the environment shows each step"
)


def kerberos_error(error: Any, subject: str, *, with_keytab: bool = False) -> KafkaIOError:
    """The error of kafka_io for a GSSError of the library.

    Args:
        error: has `min_code`, the number of Kerberos, and `gen_message`, the text of the library.
        subject: who logs in where, for the message.
        with_keytab: whether the error came when a ticket was requested with a keytab.
    """
    number = error.min_code - _KRB5_TABLE
    meaning = (_WITH_KEYTAB.get(number) if with_keytab else None) or _MEANINGS.get(number, _OTHER)
    return meaning.kind(f"GSSAPI: {subject}: {meaning.sentence} (the library says: {_text(error)})")


def _text(error: Any) -> str:
    """The text of the library: the part about Kerberos, if there is one."""
    text = one_line(str(error.gen_message()).rpartition(f"Minor ({error.min_code}): ")[2])
    return text or "nothing"
