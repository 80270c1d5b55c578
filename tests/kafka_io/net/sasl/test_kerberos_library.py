"""Tickets are kept and renewed, and every error of the library says what to do. A real KDC is in tests/brokers."""

import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

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
from kafka_io.net.sasl.kerberos_errors import kerberos_error
from kafka_io.net.sasl.kerberos_library import TICKETS, TicketCache
from kafka_io.net.sasl.mechanisms import mechanism_of
from kafka_io.net.security import Sasl
from tests.fakes.kerberos import CHOICE, OFFER, PROOF, TICKET, FakeGssapi, FakeGssError

SASL = Sasl(mechanism="GSSAPI", principal="alice", keytab="/alice.keytab")


class FakeKdc:
    """Gives tickets that are valid for 100 s; `error` is raised instead, if it is set."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.requests = 0
        self.error: KafkaIOError | None = None
        self.cache = TicketCache(self._request, lambda: self.now_s)

    def _request(self, sasl: Sasl) -> Any:
        self.requests += 1
        if self.error:
            raise self.error
        return SimpleNamespace(lifetime=100, number=self.requests, principal=sasl.principal)

    def ticket_at(self, time_s: float, sasl: Sasl = SASL) -> int:
        """The number of the ticket that a login at this time uses."""
        self.now_s = time_s
        return int(self.cache.credentials(sasl).number)


@pytest.mark.parametrize(
    ("code", "kind", "repair"),
    [  # the numbers of krb5.h
        (-1765328378, KerberosPrincipalUnknown, "correct `principal`"),
        (-1765328366, KerberosPrincipalUnknown, "correct `principal`"),
        (-1765328377, KerberosPrincipalUnknown, "correct `service_name`"),
        (-1765328352, KerberosTicketMissing, "expired; run `kinit`"),
        (-1765328243, KerberosTicketMissing, "no ticket; run `kinit`"),
        (-1765328190, KerberosTicketMissing, "no ticket; run `kinit`"),
        (-1765328189, KerberosTicketMissing, "no ticket; run `kinit`"),
        (-1765328347, KerberosClockSkew, "synchronise them with NTP"),
        (-1765328236, KerberosClockSkew, "synchronise them with NTP"),
        (-1765328228, KdcUnreachable, "correct `kdc` in krb5.conf"),
        (-1765328230, KerberosRealmUnknown, "set KRB5_CONFIG"),
        (-1765328167, KerberosRealmUnknown, "set KRB5_CONFIG"),
        (-1765328164, KerberosRealmUnknown, "set KRB5_CONFIG"),
        (-1765328160, KerberosRealmUnknown, "no `default_realm`"),
        (-1765328249, KerberosRealmUnknown, "cannot be read"),
        (-1765328248, KerberosRealmUnknown, "malformed"),
        (-1765328353, AuthenticationFailed, "KRB5_TRACE"),  # the proof of the broker does not decrypt
        (1, AuthenticationFailed, "KRB5_TRACE"),
    ],
)
def test_an_error_of_the_library_says_what_to_do(code: int, kind: type[KafkaIOError], repair: str) -> None:  # fault X18
    error = kerberos_error(FakeGssError(code), "alice at kafka@broker1")
    assert type(error) is kind
    assert error.reason.startswith("GSSAPI: alice at kafka@broker1: ")
    assert repair in error.reason
    assert error.reason.endswith("(the library says: reason)")
    assert error.retriable is (kind is KdcUnreachable)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize("code", [-1765328360, -1765328353, -1765328243, -1765328203, -1765328189])
def test_with_a_keytab_a_missing_or_old_key_is_the_reason(code: int) -> None:
    assert isinstance(kerberos_error(FakeGssError(code), "alice", with_keytab=True), KeytabUnusable)


def test_the_text_of_the_library_is_short_and_printable() -> None:  # fault X05
    error = kerberos_error(FakeGssError(7, "\x1b[31m" + "x" * 10_000), "alice")
    assert error.reason.isprintable()
    assert len(error.reason) < 500
    assert kerberos_error(FakeGssError(7, ""), "alice").reason.endswith("(the library says: nothing)")


def test_a_ticket_is_used_for_four_fifths_of_its_lifetime() -> None:
    kdc = FakeKdc()
    assert [kdc.ticket_at(time_s) for time_s in (0, 79, 80, 159, 160)] == [1, 1, 2, 2, 3]


def test_each_principal_and_keytab_has_its_own_ticket() -> None:
    kdc = FakeKdc()
    others = [
        Sasl(mechanism="GSSAPI", principal="bob", keytab="/alice.keytab"),
        Sasl(mechanism="GSSAPI", principal="alice", keytab="/other.keytab"),
    ]
    assert [kdc.ticket_at(0, sasl) for sasl in (SASL, *others, SASL)] == [1, 2, 3, 1]


def test_an_old_ticket_is_used_until_its_end_while_no_kdc_answers() -> None:  # fault X18
    kdc = FakeKdc()
    kdc.ticket_at(0)
    kdc.error = KdcUnreachable("no KDC answers")
    assert kdc.ticket_at(99) == 1
    with pytest.raises(KdcUnreachable):
        kdc.ticket_at(100)
    kdc.error = KeytabUnusable("the key is old")
    with pytest.raises(KeytabUnusable):
        kdc.ticket_at(99)


def test_after_a_broker_refused_a_ticket_another_one_is_requested() -> None:
    kdc = FakeKdc()
    kdc.ticket_at(0)
    kdc.cache.forget(SASL)
    assert kdc.ticket_at(0) == 2


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeGssapi:
    """The package `gssapi` of this test."""
    fake = FakeGssapi()
    monkeypatch.setitem(sys.modules, "gssapi", fake)
    return fake


def test_the_ticket_is_for_the_service_at_the_host_and_both_sides_must_prove_themselves(library: FakeGssapi) -> None:
    for sasl in (Sasl(mechanism="GSSAPI"), Sasl(mechanism="GSSAPI", service_name="events", principal="bob")):
        mechanism = mechanism_of(sasl, host="broker1")
        assert mechanism.first() == TICKET
        assert mechanism.answer(PROOF) == b""
        assert mechanism.answer(OFFER) == CHOICE
        assert mechanism.is_complete
    assert [context["name"] for context in library.opened] == ["service kafka@broker1", "service events@broker1"]
    assert {(context["flags"], context["mech"], context["usage"]) for context in library.opened} == {
        (2 | 32, "krb5", "initiate")
    }
    assert [request["name"] for request in library.requested] == [None, "principal bob"]
    assert all("store" not in request for request in library.requested)


def test_the_tickets_of_a_keytab_are_in_memory_and_never_in_the_default_cache(
    library: FakeGssapi, tmp_path: Path
) -> None:
    keytab = tmp_path / "alice.keytab"
    keytab.write_bytes(b"\x05\x02")
    sasl = Sasl(mechanism="GSSAPI", principal="alice", keytab=str(keytab))
    for _ in range(2):
        mechanism_of(sasl, host="broker1")
    TICKETS.forget(sasl)
    mechanism_of(sasl, host="broker1")
    TICKETS.forget(sasl)
    stores = [request["store"] for request in library.requested]
    assert [store["client_keytab"] for store in stores] == [f"FILE:{keytab}"] * 2
    assert all(store["ccache"].startswith("MEMORY:") for store in stores)
    assert len({store["ccache"] for store in stores}) == 2


def test_an_error_of_the_library_names_who_logs_in_and_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keytab = tmp_path / "alice.keytab"
    keytab.write_bytes(b"\x05\x02")
    monkeypatch.setitem(sys.modules, "gssapi", FakeGssapi(no_ticket=FakeGssError(-1765328189)))
    with pytest.raises(KeytabUnusable, match=r"alice with the keytab .*alice\.keytab: .*has no key") as raised:
        mechanism_of(Sasl(mechanism="GSSAPI", principal="alice", keytab=str(keytab)), host="broker1")
    assert isinstance(raised.value.__cause__, FakeGssError)
    with pytest.raises(KerberosTicketMissing, match=r"the user of this process at kafka@broker1: .*run `kinit`"):
        mechanism_of(Sasl(mechanism="GSSAPI"), host="broker1")


@pytest.mark.usefixtures("library")
def test_a_wrong_proof_of_the_broker_is_an_error_of_ours() -> None:  # fault X17
    mechanism = mechanism_of(Sasl(mechanism="GSSAPI"), host="broker1")
    mechanism.first()
    with pytest.raises(AuthenticationFailed, match=r"refuses the login.*Decrypt integrity check failed"):
        mechanism.answer(b"garbage")
    mechanism.answer(PROOF)
    with pytest.raises(AuthenticationFailed, match=r"refuses the login.*Decrypt integrity check failed"):
        mechanism.answer(b"unsigned")


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(
        AuthenticationFailed, match=r"libkrb5-dev and gcc, then `pip install 'penstock-etl\[kerberos\]'"
    ):
        mechanism_of(Sasl(mechanism="GSSAPI"), host="broker1")


def test_a_keytab_that_is_missing_or_no_keytab_is_refused_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", SimpleNamespace())
    keytab = tmp_path / "alice.keytab"
    sasl = Sasl(mechanism="GSSAPI", principal="alice", keytab=str(keytab))
    with pytest.raises(KeytabUnusable, match=r"alice\.keytab cannot be read: no such file"):
        TICKETS.credentials(sasl)
    for content in (b"", b"a certificate"):
        keytab.write_bytes(content)
        with pytest.raises(KeytabUnusable, match=r"alice\.keytab is not a keytab"):
            TICKETS.credentials(sasl)
