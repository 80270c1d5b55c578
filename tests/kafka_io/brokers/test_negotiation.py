"""The generation and versions of a broker are detected within a deadline, however it reacts to the requests."""

import math
import ssl
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from kafka_io.brokers import negotiation
from kafka_io.brokers.negotiation import Connector
from kafka_io.errors import (
    AuthenticationFailed,
    BrokerError,
    ConnectFailed,
    DeadlineExceeded,
    TlsFailed,
    Unsupported,
)
from kafka_io.messages.fetch import FetchRequest
from kafka_io.messages.handshake import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka_io.messages.metadata import MetadataRequest
from kafka_io.model import Broker, Generation
from kafka_io.net.secret import SecretReference
from kafka_io.net.security import Sasl, Security, Tls
from kafka_io.wire.conversation import ReceivedRequest, VersionedRequest
from kafka_io.wire.framing import framed
from tests.fakes.cluster import CLOSE, EVERYTHING, SILENCE, FakeCluster
from tests.fakes.hostile import HostileServer, Peer, hear, send, stall
from tests.fakes.kerberos import CHOICE, OFFER, PROOF, TICKET, FakeGssapi
from tests.fakes.tls import CA, over_tls, serving

API_VERSIONS, METADATA = ApiVersionsRequest.API.key, MetadataRequest.API.key


@pytest.fixture
def connector() -> Connector:
    """One for each test: it remembers which addresses are of old brokers, and a later test can get their ports."""
    return Connector(timeout_s=5.0, max_answer_bytes=10_000)


@pytest.fixture(autouse=True)
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negotiation, "_SILENCE_S", 0.2)


def test_the_versions_of_a_modern_broker_come_from_its_answer(connector: Connector) -> None:
    with FakeCluster(logs={}, offered={**EVERYTHING, 1: (4, 9)}) as cluster:
        negotiated = connector.connect(cluster.bootstrap[0])
        assert negotiated.generation is Generation.MODERN
        assert negotiated.versions.pick(FetchRequest.API) == 9
        assert negotiated.versions.pick(FetchRequest.API, max_version=8) == 8
        assert [received.version for received in cluster.heard(API_VERSIONS)] == [0]
        negotiated.connection.close()


def test_an_api_without_a_common_version_is_an_error(connector: Connector) -> None:
    with FakeCluster(logs={}, offered={API_VERSIONS: (0, 0), METADATA: (40, 41)}) as cluster:
        negotiated = connector.connect(cluster.bootstrap[0])
        negotiated.connection.close()
        versions = negotiated.versions
        with pytest.raises(Unsupported, match="v40 to v41"):
            versions.pick(MetadataRequest.API)
        with pytest.raises(Unsupported, match="does not support Fetch"):
            versions.pick(FetchRequest.API)


# 0.8 closes on ApiVersions, 0.9 neither answers nor closes
@pytest.mark.parametrize("reaction", [CLOSE, SILENCE], ids=["closing", "silent"])
def test_a_broker_that_answers_metadata_but_not_api_versions_is_old(reaction: object, connector: Connector) -> None:
    with FakeCluster(logs={}) as cluster:
        cluster.brokers[0].handlers[API_VERSIONS] = lambda _: reaction
        negotiated = connector.connect(cluster.bootstrap[0])
        assert negotiated.generation is Generation.V08
        assert negotiated.versions.pick(FetchRequest.API) == 0
        assert negotiated.connection.request(VersionedRequest(MetadataRequest(topics=()), 0)).topics
        negotiated.connection.close()


@pytest.mark.slow
def test_a_broker_that_is_known_as_old_is_detected_once_in_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    connector = Connector(timeout_s=5.0, max_answer_bytes=10_000)
    with FakeCluster(logs={}) as cluster:
        cluster.brokers[0].handlers[API_VERSIONS] = lambda _: SILENCE
        for _ in range(2):
            negotiated = connector.connect(cluster.bootstrap[0])
            assert negotiated.generation is Generation.V08
            negotiated.connection.close()
            assert len(cluster.heard(API_VERSIONS)) == 2
        monkeypatch.setattr(negotiation, "_KNOWN_AS_OLD_S", 0)
        connector.connect(cluster.bootstrap[0]).connection.close()
        assert len(cluster.heard(API_VERSIONS)) == 4


@pytest.mark.parametrize("reaction", [CLOSE, SILENCE], ids=["closing", "silent"])
def test_a_broker_that_is_old_as_the_settings_say_is_asked_once_and_not_waited_for(
    reaction: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(negotiation, "_SILENCE_S", 60.0)
    with FakeCluster(logs={}) as cluster:
        cluster.brokers[0].handlers[API_VERSIONS] = lambda _: reaction
        connector = Connector(timeout_s=60.0, max_answer_bytes=10_000, generation=Generation.V08, refuses_newer=True)
        for _ in range(2):
            negotiated = connector.connect(cluster.bootstrap[0])
            assert (negotiated.generation, negotiated.versions.pick(FetchRequest.API)) == (Generation.V08, 0)
            assert negotiated.connection.request(VersionedRequest(MetadataRequest(topics=()), 0)).topics
            negotiated.connection.close()
        assert len(cluster.heard(API_VERSIONS)) == 1


def test_a_broker_that_is_newer_than_the_settings_say_is_refused() -> None:  # fault P15
    with FakeCluster(logs={}) as cluster:
        connector = Connector(timeout_s=5.0, max_answer_bytes=10_000, generation=Generation.V08, refuses_newer=True)
        for _ in range(2):
            with pytest.raises(Unsupported, match=r'runs 0\.10 or later, .* generation = "0\.8-0\.9" in the settings'):
                connector.connect(cluster.bootstrap[0])


def test_a_newer_broker_of_a_cluster_whose_generation_was_detected_is_used_with_old_versions() -> None:
    """This happens in a rolling upgrade from 0.9."""
    with FakeCluster(logs={}) as cluster:
        connector = Connector(timeout_s=5.0, max_answer_bytes=10_000, generation=Generation.V08)
        negotiated = connector.connect(cluster.bootstrap[0])
        negotiated.connection.close()
        assert negotiated.versions.pick(FetchRequest.API) == 0
        assert not cluster.heard(API_VERSIONS)


def slow_at_first(
    answer: Callable[[ReceivedRequest], object], *, pauses: int = 1
) -> Callable[[ReceivedRequest], object]:
    """A broker whose machine pauses before its first answers."""
    requests: list[ReceivedRequest] = []

    def handler(received: ReceivedRequest) -> object:
        requests.append(received)
        if len(requests) <= pauses:
            time.sleep(0.5)
        return answer(received)

    return handler


@pytest.mark.slow
def test_a_modern_broker_that_was_slow_once_is_not_treated_as_an_old_one(connector: Connector) -> None:
    with FakeCluster(logs={}) as cluster:
        handlers = cluster.brokers[0].handlers
        handlers[API_VERSIONS] = slow_at_first(handlers[API_VERSIONS])
        negotiated = connector.connect(cluster.bootstrap[0])
        assert negotiated.generation is Generation.MODERN
        negotiated.connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("pauses", [1, 2])
def test_a_slow_broker_that_demands_a_login_is_a_temporary_error_at_most(
    pauses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A modern broker that has a login closes the connection on Metadata before it."""
    monkeypatch.setenv("KAFKA_PASSWORD", "pencil")
    sasl = Sasl(mechanism="SCRAM-SHA-256", username="user", password=SecretReference("env", "KAFKA_PASSWORD"))
    connector = Connector(timeout_s=5.0, max_answer_bytes=10_000, security=Security(sasl=sasl))
    with FakeCluster(logs={}) as cluster:
        handlers = cluster.brokers[0].handlers
        handlers[API_VERSIONS] = slow_at_first(handlers[API_VERSIONS], pauses=pauses)
        handlers[METADATA] = lambda _: CLOSE
        if pauses == 1:
            negotiated = connector._negotiated(cluster.bootstrap[0])
            assert negotiated.generation is Generation.MODERN
            negotiated.connection.close()
        else:
            with pytest.raises(DeadlineExceeded):
                connector._negotiated(cluster.bootstrap[0])


def test_a_server_that_closes_on_every_request_is_unsupported(connector: Connector) -> None:
    with FakeCluster(logs={}) as cluster:
        cluster.brokers[0].handlers[API_VERSIONS] = cluster.brokers[0].handlers[METADATA] = lambda _: CLOSE
        with pytest.raises(Unsupported, match="found through ZooKeeper"):
            connector.connect(cluster.bootstrap[0])


@pytest.mark.slow
def test_a_broker_of_07_that_answers_nothing_ends_with_the_deadline() -> None:
    connector = Connector(timeout_s=0.5, max_answer_bytes=10_000)
    with HostileServer([hear, stall]) as server, pytest.raises(DeadlineExceeded):
        connector.connect(server.broker)


def test_an_address_without_a_listener_fails_at_once(connector: Connector) -> None:
    with pytest.raises(ConnectFailed):
        connector.connect(Broker(1, "127.0.0.1", 1))


def test_an_error_in_the_answer_is_raised(connector: Connector) -> None:
    with FakeCluster(logs={}) as cluster:
        cluster.brokers[0].handlers[API_VERSIONS] = lambda _: ApiVersionsResponse(error_code=35, api_keys=())
        with pytest.raises(BrokerError, match="35"):
            connector.connect(cluster.bootstrap[0])


def test_the_error_of_a_login_shows_the_brokers_text_short_printable_and_without_the_secret(  # fault H03
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "pencil")
    sasl = Sasl(mechanism="SCRAM-SHA-256", username="user", password=SecretReference("env", "KAFKA_PASSWORD"))
    connector = Connector(timeout_s=5.0, max_answer_bytes=1_000_000, security=Security(sasl=sasl))
    handshake = SaslHandshakeRequest.API
    with FakeCluster(logs={}, offered={**EVERYTHING, handshake.key: handshake.versions}) as cluster:
        mechanisms = ("pencil", "\x1b[31mFATAL\n", *("x" * 1000,) * 30)
        cluster.brokers[0].handlers[handshake.key] = lambda _: SaslHandshakeResponse(
            error_code=33, mechanisms=mechanisms
        )
        with pytest.raises(AuthenticationFailed, match=r"accepts: \*\*\*, \?\[31mFATAL\?, xxx") as raised:
            connector.connect(cluster.bootstrap[0])
        message = str(raised.value)
        assert (message.isprintable(), "pencil" in message) == (True, False)
        assert len(message) < 300


AUTHENTICATE, HANDSHAKE = SaslAuthenticateRequest.API, SaslHandshakeRequest.API
LOGINS = {**EVERYTHING, HANDSHAKE.key: HANDSHAKE.versions, AUTHENTICATE.key: AUTHENTICATE.versions}


def log_in(cluster: FakeCluster, answer: SaslAuthenticateResponse) -> negotiation.NegotiatedConnection:
    """Connect to broker 0 with the mechanism PLAIN; the broker answers the client's bytes with `answer`."""
    password = SecretReference("env", "KAFKA_PASSWORD")
    sasl = Sasl(mechanism="PLAIN", username="user", password=password, allow_secret_over_plaintext=True)
    handlers = cluster.brokers[0].handlers
    handlers[HANDSHAKE.key] = lambda _: SaslHandshakeResponse(error_code=0, mechanisms=("PLAIN",))
    handlers[AUTHENTICATE.key] = lambda _: answer
    connector = Connector(timeout_s=5.0, max_answer_bytes=1_000_000, security=Security(sasl=sasl))
    return connector.connect(cluster.bootstrap[0])


@pytest.mark.parametrize("lifetime_ms", [0, 60_000])
def test_a_login_is_due_again_before_the_lifetime_that_the_broker_names_ends(
    lifetime_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "pencil")
    with FakeCluster(logs={}, offered=LOGINS) as cluster:
        answer = SaslAuthenticateResponse(
            error_code=0, error_message=None, auth_bytes=b"", session_lifetime_ms=lifetime_ms
        )
        began = time.monotonic()
        negotiated = log_in(cluster, answer)
        negotiated.connection.close()
        due_in_s = negotiated.login_due_at - began
        assert (due_in_s == math.inf) if lifetime_ms == 0 else (0 < due_in_s < 60)
        [received] = cluster.heard(AUTHENTICATE.key)
        assert received.request == SaslAuthenticateRequest(auth_bytes=b"\0user\0pencil")


@pytest.mark.parametrize("text", ["the account is locked", None])
def test_a_refused_login_shows_the_text_of_the_broker_if_it_sends_one(
    text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "pencil")
    with FakeCluster(logs={}, offered=LOGINS) as cluster:
        answer = SaslAuthenticateResponse(error_code=58, error_message=text, auth_bytes=b"", session_lifetime_ms=0)
        sentence = text or r"the broker does not accept the credentials \(error 58 SASL_AUTHENTICATION_FAILED\)"
        with pytest.raises(AuthenticationFailed, match=f"PLAIN: {sentence}"):
            log_in(cluster, answer)


KERBEROS_LOGIN = Security(sasl=Sasl(mechanism="GSSAPI"))
BARE_LOGIN = [hear, send(framed(PROOF)), hear, send(framed(OFFER)), hear, hear, send(framed(b"answer"))]
"""A broker of 0.9 that accepts a login, and answers a request."""


@pytest.fixture
def _kerberos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", FakeGssapi())


@pytest.mark.usefixtures("_kerberos")
def test_a_login_of_0_9_is_bare_tokens_without_a_handshake() -> None:
    """A broker of 0.9 takes ApiVersions for a token and closes the connection. It does not answer the last token."""
    connector = Connector(
        timeout_s=5.0,
        max_answer_bytes=10_000,
        generation=Generation.V08,
        refuses_newer=True,
        security=KERBEROS_LOGIN,
    )
    with HostileServer([hear], BARE_LOGIN) as server:
        for _ in range(2):  # the second connection is not probed again
            negotiated = connector.connect(server.broker)
            assert (negotiated.host, negotiated.generation) == ("127.0.0.1", Generation.V08)
            assert negotiated.connection.exchange(b"request") == b"answer"
            negotiated.connection.close()
        _probe, *tokens = server.requests
        assert tokens == [TICKET, b"", CHOICE, b"request"] * 2


@pytest.mark.usefixtures("_kerberos")
def test_a_broker_that_is_newer_or_slow_is_no_broker_of_0_9_with_a_login() -> None:  # fault P15
    connector = Connector(
        timeout_s=0.3,
        max_answer_bytes=10_000,
        generation=Generation.V08,
        refuses_newer=True,
        security=KERBEROS_LOGIN,
    )
    with FakeCluster(logs={}) as cluster, pytest.raises(Unsupported, match=r"runs 0\.10 or later"):
        connector.connect(cluster.bootstrap[0])
    with HostileServer([hear, stall], BARE_LOGIN) as server, pytest.raises(DeadlineExceeded):
        connector.connect(server.broker)


@pytest.mark.slow
@pytest.mark.usefixtures("_kerberos")
def test_a_broker_that_closes_on_every_request_may_be_of_0_9_with_kerberos() -> None:
    connector = Connector(timeout_s=5.0, max_answer_bytes=10_000, security=KERBEROS_LOGIN)
    with HostileServer([hear]) as server, pytest.raises(Unsupported, match=r'set `generation = "0\.8-0\.9"`'):
        connector.connect(server.broker)


def test_after_a_broker_refused_a_login_with_kerberos_other_tickets_are_requested(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A ticket can be for an old key of the broker."""
    library = FakeGssapi()
    monkeypatch.setitem(sys.modules, "gssapi", library)
    (tmp_path / "keytab").write_bytes(b"\x05\x02")
    sasl = Sasl(mechanism="GSSAPI", principal="alice", keytab=str(tmp_path / "keytab"))
    connector = Connector(timeout_s=5.0, max_answer_bytes=10_000, security=Security(sasl=sasl))
    handshake = SaslHandshakeRequest.API
    with FakeCluster(logs={}, offered={**EVERYTHING, handshake.key: handshake.versions}) as cluster:
        cluster.brokers[0].handlers[handshake.key] = lambda _: SaslHandshakeResponse(
            error_code=33, mechanisms=("PLAIN",)
        )
        for _ in range(2):
            with pytest.raises(AuthenticationFailed, match="does not accept GSSAPI; it accepts: PLAIN"):
                connector.connect(cluster.bootstrap[0])
    assert len(library.requested) == 2


@pytest.mark.parametrize("only", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_without_tls_learns_that_the_broker_requires_tls(
    only: ssl.TLSVersion, connector: Connector
) -> None:  # fault F03
    def serve_tls(peer: Peer) -> None:
        with suppress(OSError):
            over_tls(serving(only=only), stall)(peer)

    with HostileServer([serve_tls]) as server:
        with pytest.raises(TlsFailed, match="this port speaks TLS: set `tls = true`") as raised:
            connector.connect(server.broker)
        assert not raised.value.retriable


def test_a_client_with_tls_learns_that_the_broker_has_none() -> None:  # fault F03
    connector = Connector(timeout_s=5.0, max_answer_bytes=10_000, security=Security(tls=Tls(ca=CA)))
    with FakeCluster(logs={}) as cluster:
        with pytest.raises(TlsFailed, match=r"this port does not speak TLS: .*remove `tls`") as raised:
            connector.connect(cluster.bootstrap[0])
        assert not raised.value.retriable


# One that is being restarted: it has TLS, and answers nothing without it.
def test_a_broker_that_breaks_the_handshake_is_tried_again() -> None:  # fault F03
    connector = Connector(timeout_s=5.0, max_answer_bytes=10_000, security=Security(tls=Tls(ca=CA)))
    with HostileServer([]) as server, pytest.raises(ConnectFailed, match="broke during the TLS handshake") as raised:
        connector.connect(server.broker)
    assert raised.value.retriable


def test_a_port_of_http_is_named(connector: Connector) -> None:  # fault F03
    answer = send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with HostileServer([hear, answer]) as server, pytest.raises(Unsupported, match="an HTTP server answers"):
        connector.connect(server.broker)
    tls = Connector(timeout_s=5.0, max_answer_bytes=10_000, security=Security(tls=Tls(ca=CA)))
    https = HostileServer([over_tls(serving(), hear, answer)])
    with https as server, pytest.raises(Unsupported, match="an HTTP server answers"):
        tls.connect(server.broker)
    with HostileServer([answer, stall]) as server, pytest.raises(TlsFailed, match="does not speak TLS"):
        tls.connect(server.broker)
