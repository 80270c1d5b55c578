"""The generation and versions of a broker are detected within a deadline, however it reacts to the requests."""

import math
import time
from collections.abc import Callable

import pytest

from kafka_io.brokers import negotiation
from kafka_io.brokers.negotiation import Connector
from kafka_io.errors import AuthenticationFailed, BrokerError, ConnectFailed, DeadlineExceeded, Unsupported
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
from kafka_io.net.security import Sasl, Security
from kafka_io.wire.conversation import ReceivedRequest, VersionedRequest
from tests.fakes.cluster import CLOSE, EVERYTHING, SILENCE, FakeCluster
from tests.fakes.hostile import HostileServer, hear, stall

API_VERSIONS, METADATA = ApiVersionsRequest.API.key, MetadataRequest.API.key
CONNECTOR = Connector(timeout_s=5.0, max_answer_bytes=10_000)


@pytest.fixture(autouse=True)
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negotiation, "_SILENCE_S", 0.2)


def test_the_versions_of_a_modern_broker_come_from_its_answer() -> None:
    with FakeCluster(logs={}, offered={**EVERYTHING, 1: (4, 9)}) as cluster:
        negotiated = CONNECTOR.connect(cluster.bootstrap[0])
        assert negotiated.generation is Generation.MODERN
        assert negotiated.versions.pick(FetchRequest.API) == 9
        assert negotiated.versions.pick(FetchRequest.API, max_version=8) == 8
        assert [received.version for received in cluster.heard(API_VERSIONS)] == [0]
        negotiated.connection.close()


def test_an_api_without_a_common_version_is_an_error() -> None:
    with FakeCluster(logs={}, offered={API_VERSIONS: (0, 0), METADATA: (40, 41)}) as cluster:
        negotiated = CONNECTOR.connect(cluster.bootstrap[0])
        negotiated.connection.close()
        versions = negotiated.versions
        with pytest.raises(Unsupported, match="v40 to v41"):
            versions.pick(MetadataRequest.API)
        with pytest.raises(Unsupported, match="does not support Fetch"):
            versions.pick(FetchRequest.API)


# 0.8 closes on ApiVersions, 0.9 neither answers nor closes
@pytest.mark.parametrize("reaction", [CLOSE, SILENCE], ids=["closing", "silent"])
def test_a_broker_that_answers_metadata_but_not_api_versions_is_old(reaction: object) -> None:
    with FakeCluster(logs={}) as cluster:
        cluster.brokers[0].handlers[API_VERSIONS] = lambda _: reaction
        negotiated = CONNECTOR.connect(cluster.bootstrap[0])
        assert negotiated.generation is Generation.V08
        assert negotiated.versions.pick(FetchRequest.API) == 0
        assert negotiated.connection.request(VersionedRequest(MetadataRequest(topics=()), 0)).topics
        negotiated.connection.close()


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
            with pytest.raises(Unsupported, match=r'is of 0\.10 or later, .* generation = "0\.8-0\.9" in the settings'):
                connector.connect(cluster.bootstrap[0])


def test_a_newer_broker_of_a_cluster_whose_generation_was_detected_is_used_with_old_versions() -> None:
    """This happens in a rolling upgrade from 0.9."""
    with FakeCluster(logs={}) as cluster:
        connector = Connector(timeout_s=5.0, max_answer_bytes=10_000, generation=Generation.V08)
        negotiated = connector.connect(cluster.bootstrap[0])
        negotiated.connection.close()
        assert negotiated.versions.pick(FetchRequest.API) == 0
        assert not cluster.heard(API_VERSIONS)


def slow_at_first(answer: Callable[[ReceivedRequest], object]) -> Callable[[ReceivedRequest], object]:
    """A broker whose machine pauses once."""
    requests: list[ReceivedRequest] = []

    def handler(received: ReceivedRequest) -> object:
        requests.append(received)
        if len(requests) == 1:
            time.sleep(0.5)
        return answer(received)

    return handler


def test_a_modern_broker_that_was_slow_once_is_not_treated_as_an_old_one() -> None:
    with FakeCluster(logs={}) as cluster:
        handlers = cluster.brokers[0].handlers
        handlers[API_VERSIONS] = slow_at_first(handlers[API_VERSIONS])
        negotiated = CONNECTOR.connect(cluster.bootstrap[0])
        assert negotiated.generation is Generation.MODERN
        negotiated.connection.close()


def test_a_server_that_closes_on_every_request_is_unsupported() -> None:
    with FakeCluster(logs={}) as cluster:
        cluster.brokers[0].handlers[API_VERSIONS] = cluster.brokers[0].handlers[METADATA] = lambda _: CLOSE
        with pytest.raises(Unsupported, match="found through ZooKeeper"):
            CONNECTOR.connect(cluster.bootstrap[0])


def test_a_broker_of_07_that_answers_nothing_ends_with_the_deadline() -> None:
    connector = Connector(timeout_s=0.5, max_answer_bytes=10_000)
    with HostileServer([hear, stall]) as server, pytest.raises(DeadlineExceeded):
        connector.connect(server.broker)


def test_an_address_without_a_listener_fails_at_once() -> None:
    with pytest.raises(ConnectFailed):
        CONNECTOR.connect(Broker(1, "127.0.0.1", 1))


def test_an_error_in_the_answer_is_raised() -> None:
    with FakeCluster(logs={}) as cluster:
        cluster.brokers[0].handlers[API_VERSIONS] = lambda _: ApiVersionsResponse(error_code=35, api_keys=())
        with pytest.raises(BrokerError, match="35"):
            CONNECTOR.connect(cluster.bootstrap[0])


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
