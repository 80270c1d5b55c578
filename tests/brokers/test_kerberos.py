"""Logins with Kerberos at real brokers, with the tickets of a real KDC; and what is reported when there is none."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafka_io.brokers.bootstrap import parse_bootstrap
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.brokers.negotiation import Connector
from kafka_io.errors import (
    KafkaIOError,
    KdcUnreachable,
    KerberosPrincipalUnknown,
    KerberosRealmUnknown,
    KerberosTicketMissing,
    KeytabUnusable,
    Unsupported,
)
from kafka_io.messages.handshake import SaslHandshakeRequest
from kafka_io.messages.metadata import MetadataRequest
from kafka_io.model import Generation
from kafka_io.net.sasl.kerberos_library import TICKETS
from kafka_io.net.security import Sasl, Security
from kafka_io.wire.conversation import ApiVersionRanges, VersionedRequest
from pipelines.cli.main import main
from resources.settings.settings import ClusterSettings
from tests.brokers.broker_lake import BrokerLake
from tests.brokers.ports import free_ports
from tests.brokers.reading import read
from tests.kerberos.broker import CLIENT, SESSION_S, KerberosBroker, kerberos_broker
from tests.kerberos.kdc import REALM

pytestmark = pytest.mark.brokers

RECORDS = [(b"key %d" % number, b"value " * number) for number in range(200)]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KerberosBroker]:
    """A KDC, and a broker 3.9.1 that accepts its tickets."""
    with kerberos_broker(tmp_path_factory.mktemp("kerberos"), "3.9.1") as running:
        yield running


@pytest.fixture
def kerberos(servers: KerberosBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[KerberosBroker]:
    """The servers, for a process without tickets whose library knows them."""
    use(servers, monkeypatch)
    yield servers
    servers.kdc.tickets.unlink(missing_ok=True)
    TICKETS.forget(keytab(servers))


def use(servers: KerberosBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the library of this process use the KDC of these servers."""
    for name, value in servers.kdc.environment.items():
        monkeypatch.setenv(name, value)


def keytab(servers: KerberosBroker, **changes: Any) -> Sasl:
    """The settings of `sasl` with a keytab."""
    sasl = Sasl(mechanism="GSSAPI", principal=CLIENT, keytab=str(servers.kdc.keytab(CLIENT)))
    return replace(sasl, **changes)


def connection_of(servers: KerberosBroker, sasl: Sasl) -> ModernBrokerConnection:
    """A connection that is opened when it is first used."""
    (broker,) = parse_bootstrap(servers.bootstrap)
    connector = Connector(timeout_s=20, max_answer_bytes=1_000_000, security=Security(sasl=sasl))
    return ModernBrokerConnection(broker, connector)


def ask(servers: KerberosBroker, sasl: Sasl) -> None:
    """Log in, and send a request that the broker answers after a login only."""
    with connection_of(servers, sasl) as connection:
        assert connection.request(MetadataRequest(topics=())).brokers


def other_realms(servers: KerberosBroker, monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> None:
    """Let the library use a krb5.conf with another section `[realms]`."""
    file = folder / "krb5.conf"
    file.write_text(servers.kdc.config.read_text().partition("[realms]")[0] + text)
    monkeypatch.setenv("KRB5_CONFIG", str(file))


def check_loads_all(servers: KerberosBroker, settings: ClusterSettings, folder: Path) -> None:
    """Check that records produced through the listener without a login are loaded through the one with Kerberos."""
    servers.broker.create_topic("clicks")
    servers.broker.produce("clicks", RECORDS, codec="gzip")
    lake = BrokerLake(folder, None, settings)
    load = lake.load("clicks")
    assert (load.error, load.rows) == (None, len(RECORDS))
    assert lake.rows("clicks") == read(servers.broker, "clicks")


def test_a_topic_is_loaded_with_a_keytab(kerberos: KerberosBroker, tmp_path: Path) -> None:
    settings = ClusterSettings(bootstrap=kerberos.bootstrap, security=Security(sasl=keytab(kerberos)))
    check_loads_all(kerberos, settings, tmp_path)
    assert not kerberos.kdc.tickets.exists()


def test_the_connections_of_a_process_share_a_ticket(kerberos: KerberosBroker) -> None:
    def requested() -> int:
        return (kerberos.kdc.folder / "kdc.log").read_text().count("AS_REQ")

    before = requested()
    for _ in range(2):
        ask(kerberos, keytab(kerberos, principal=f"{CLIENT}@{REALM}"))
    assert requested() == before + 1


def test_the_client_logs_in_again_before_the_session_ends(kerberos: KerberosBroker) -> None:
    with connection_of(kerberos, keytab(kerberos)) as connection:
        assert connection.request(MetadataRequest(topics=())).brokers
        opened = connection._connection
        time.sleep(SESSION_S + 0.1)
        assert connection.request(MetadataRequest(topics=())).brokers
        assert connection._connection is opened


def test_the_tokens_of_brokers_before_1_0_are_bare_frames(kerberos: KerberosBroker) -> None:
    (broker,) = parse_bootstrap(kerberos.bootstrap)
    connector = Connector(timeout_s=20, max_answer_bytes=1_000_000, security=Security(sasl=keytab(kerberos)))
    handshake_v0 = ApiVersionRanges({SaslHandshakeRequest.API.key: (0, 0)})
    negotiated = connector.log_in(replace(connector._negotiated(broker), versions=handshake_v0))
    assert negotiated.connection.request(VersionedRequest(MetadataRequest(topics=()), 1)).brokers
    negotiated.connection.close()


def test_without_a_keytab_the_ticket_of_kinit_is_used_until_it_expires(kerberos: KerberosBroker) -> None:
    by_kinit = Sasl(mechanism="GSSAPI")
    with pytest.raises(KerberosTicketMissing, match="no ticket; run `kinit`"):
        ask(kerberos, by_kinit)
    kerberos.kdc.kinit(CLIENT)
    ask(kerberos, by_kinit)
    ask(kerberos, Sasl(mechanism="GSSAPI", principal=CLIENT))
    with pytest.raises(KerberosTicketMissing, match=r"no ticket.* client principal bob@"):
        ask(kerberos, Sasl(mechanism="GSSAPI", principal="bob"))
    kerberos.kdc.kinit(CLIENT, "-l", "1s")
    time.sleep(2)
    with pytest.raises(KerberosTicketMissing, match="the ticket has expired; run `kinit`"):
        ask(kerberos, by_kinit)


def test_principals_that_the_kdc_does_not_know_are_named(kerberos: KerberosBroker) -> None:
    with pytest.raises(KeytabUnusable, match=r"bob with the keytab .* has no key of the principal"):
        ask(kerberos, keytab(kerberos, principal="bob"))
    with pytest.raises(KerberosPrincipalUnknown, match=r"correct `service_name`.* other/127\.0\.0\.1@PENSTOCK\.TEST"):
        ask(kerberos, keytab(kerberos, service_name="other"))
    kerberos.kdc.add("leaver")
    kerberos.kdc.remove("leaver")
    leaver = keytab(kerberos, principal="leaver", keytab=str(kerberos.kdc.keytab("leaver")))
    with pytest.raises(KerberosPrincipalUnknown, match=r"correct `principal`, or enable it .*'leaver@PENSTOCK"):
        ask(kerberos, leaver)


def test_a_kdc_that_does_not_answer_or_is_not_known_is_an_error(  # fault X18
    kerberos: KerberosBroker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    realm = f"[realms]\n{REALM} = {{\n kdc = 127.0.0.1:{port}\n}}\n"
    raised: list[KafkaIOError] = []
    for text in (realm, ""):
        other_realms(kerberos, monkeypatch, tmp_path, text)
        with pytest.raises(KafkaIOError) as error:
            ask(kerberos, keytab(kerberos))
        raised.append(error.value)
    assert [(type(error), error.retriable) for error in raised] == [
        (KdcUnreachable, True),
        (KerberosRealmUnknown, False),
    ]


def test_config_check_says_how_to_repair_a_login(kerberos: KerberosBroker, tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(
        f'lake = "lake"\n[clusters.main]\nbootstrap = "{kerberos.bootstrap}"\n'
        '[clusters.main.security]\nsasl = { mechanism = "GSSAPI", principal = "alice", keytab = "alice.keytab" }\n'
    )
    output = CliRunner().invoke(main, ["--settings", str(file), "config", "check", "--json"]).stdout
    [result] = [result for result in json.loads(output)["results"] if result["check"] == "cluster main"]
    assert f"the keytab {tmp_path}/alice.keytab cannot be read: no such file" in result["message"]
    assert result["repair"].startswith("Correct `keytab` or `principal`")


@pytest.mark.thorough  # test_negotiation.py has the same bytes without a broker
def test_a_topic_of_0_9_is_loaded(zookeeper_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "servers"
    with kerberos_broker(folder, "0.9.0.1", zookeeper=f"{zookeeper_server}/{tmp_path.name}") as old:
        use(old, monkeypatch)
        with pytest.raises(Unsupported, match=r'if it runs 0\.9, set `generation = "0\.8-0\.9"`'):
            ask(old, keytab(old))
        settings = ClusterSettings(
            bootstrap=old.bootstrap, security=Security(sasl=keytab(old)), generation=Generation.V08
        )
        check_loads_all(old, settings, tmp_path)


def test_a_newer_broker_than_the_settings_say_is_refused(kerberos: KerberosBroker) -> None:  # fault P15
    (broker,) = parse_bootstrap(kerberos.bootstrap)
    connector = Connector(
        timeout_s=20,
        max_answer_bytes=1_000_000,
        security=Security(sasl=keytab(kerberos)),
        generation=Generation.V08,
        refuses_newer=True,
    )
    with pytest.raises(Unsupported, match=r"the broker runs 0\.10 or later"):
        connector.connect(broker)
