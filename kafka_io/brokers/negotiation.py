"""Connects to a broker from 0.8 on: asks which versions it supports, and logs in.

A broker from 0.10 on answers ApiVersions. A 0.8 broker closes the connection instead, and a 0.9 broker neither answers
nor closes it [kafka-0.8: Versions]; both answer Metadata v0. They do not check versions, so an answer does not prove
that they support the version: for them the versions are fixed.
"""

import ssl
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from kafka_io.brokers.fetch_rate import UNLIMITED, FetchRate
from kafka_io.brokers.retry import FirstContact
from kafka_io.closing import closed_on_error
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import (
    NOWHERE,
    AuthenticationFailed,
    BrokerError,
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    NetworkError,
    TlsFailed,
    Unsupported,
    WireError,
)
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
from kafka_io.net.connection import Connection
from kafka_io.net.deadline import Deadline
from kafka_io.net.sasl.authentication import Mechanism, authenticate
from kafka_io.net.sasl.kerberos_library import TICKETS
from kafka_io.net.sasl.mechanisms import mechanism_of
from kafka_io.net.security import KERBEROS, PLAINTEXT, Sasl, Security
from kafka_io.net.stream import check_no_tls
from kafka_io.net.tls import NO_TLS_HERE, tls_context
from kafka_io.net.token_server import TOKENS
from kafka_io.wire.conversation import ApiVersionRanges, ClientConversation, VersionedRequest

CLIENT_ID = "penstock"
VersionedConnection = Connection[VersionedRequest[Any], Any]

# The versions that both 0.8.2 and 0.9 support, by API number [kafka-0.8: Versions], and the APIs of groups: a broker of
# 0.8 closes the connection when it receives one of these.
_GROUP_APIS = range(11, 17)
_OLD_VERSIONS = ApiVersionRanges(
    {0: (0, 0), 1: (0, 0), 2: (0, 0), 3: (0, 0), 8: (0, 1), 9: (0, 1), 10: (0, 0), **dict.fromkeys(_GROUP_APIS, (0, 0))}
)
_SILENCE_S = 2.0  # how long to wait for the answer to ApiVersions before Metadata is tried
# How much later than the answer to Metadata the one to an earlier ApiVersions may come.
_DELAY_S = 0.2
# To detect a broker of 0.9, the client waits twice for an answer that does not come. The result is kept, so that the
# next connections need not wait. It expires, because a broker can be upgraded; until then the old versions are used,
# which brokers before 4.0 support too.
_KNOWN_AS_OLD_S = 600.0
_API_VERSIONS = VersionedRequest(ApiVersionsRequest(), 0)  # every broker that has this API supports this version
_METADATA = VersionedRequest(MetadataRequest(topics=()), 0)
# A session with an end is used for this share of its length: the broker closes the connection on a later request.
_SESSION_SHARE = 0.85
_NEWER_THAN_GIVEN = (
    "the broker runs 0.10 or later, so that timestamps and headers would be lost with "
    f'generation = "{Generation.V08}" in the settings; remove this setting'
)
_FRAMED_LOGIN_SINCE = 1  # version of SaslHandshake; before it, the tokens of a login have no request header (KIP-152)


@dataclass(frozen=True, slots=True, kw_only=True)
class NegotiatedConnection:
    """An open connection, and the versions that the broker supports on it.

    `host` is the host name of the broker. `login_due_at` is the time on the monotonic clock from which the client must
    log in again (KIP-368).
    """

    host: str
    connection: VersionedConnection
    versions: ApiVersionRanges
    generation: Generation
    login_due_at: float = inf


@dataclass(eq=False, kw_only=True)
class Connector:
    """Opens connections to the brokers of one cluster.

    Args:
        timeout_s: for connecting, and for each answer.
        max_answer_bytes: a larger answer is an error.
        generation: the generation of the brokers; None detects it, which takes four seconds per broker of 0.9.
        refuses_newer: whether brokers that are newer than V08 says are refused (fault P15).
        security: TLS and SASL.
        fetch_rate: the rate at which this process fetches records.

    Attributes:
        contact: the first contact with the cluster.

    Raises:
        TlsFailed: a file of `security` cannot be used.
        SecretMissing: the password of the private key does not exist.
    """

    timeout_s: float
    max_answer_bytes: int
    generation: Generation | None = None
    refuses_newer: bool = False
    security: Security = PLAINTEXT
    fetch_rate: FetchRate = UNLIMITED
    contact: FirstContact = field(default_factory=FirstContact, init=False)

    def __post_init__(self) -> None:
        self._tls = tls_context(self.security.tls) if self.security.tls else None
        self._sasl = self.security.sasl
        self._known_as_old: dict[str, float] = {}
        """The addresses of old brokers, each with the time at which this was detected."""

    def connect(self, broker: Broker) -> NegotiatedConnection:
        """A connection to `broker` with known versions, logged in if the settings have SASL.

        Raises:
            ConnectFailed: no connection to the broker's address is possible.
            DeadlineExceeded: the broker does not answer in time.
            Unsupported: it is a 0.7 broker, or no Kafka broker; or it is newer than the given generation.
            TlsFailed: the broker did not prove its identity.
            AuthenticationFailed: the broker refuses the login.
        """
        negotiated = self._negotiated(broker)
        return negotiated if self._sasl is None else self.log_in(negotiated)

    def log_in(self, negotiated: NegotiatedConnection) -> NegotiatedConnection:
        """Log in on a connection without pending answers, for the first time or again. Raises the errors of `connect`.

        An error closes the connection.
        """
        assert self._sasl is not None
        started = time.monotonic()
        with closed_on_error(negotiated.connection):
            lifetime_ms = _log_in(negotiated, self._sasl, self.timeout_s)
        due_at = started + lifetime_ms / 1000 * _SESSION_SHARE if lifetime_ms > 0 else inf
        return replace(negotiated, login_due_at=due_at)

    def _negotiated(self, broker: Broker) -> NegotiatedConnection:
        old_since = self._known_as_old.get(broker.address, -_KNOWN_AS_OLD_S)
        if time.monotonic() < old_since + _KNOWN_AS_OLD_S:
            return self._old(broker)
        if self.generation is Generation.V08:
            return self._old_by_settings(broker)
        try:
            return self._modern(broker, self._open(broker))
        except (ConnectionLost, DeadlineExceeded):
            return self._old_or_slow(broker)

    def _old_or_slow(self, broker: Broker) -> NegotiatedConnection:
        """Negotiate with a broker that did not answer ApiVersions. Raises DeadlineExceeded for one that stays slow.

        A server that closes the connection on both may speak TLS, which is worth an error of its own.

        It runs 0.8 or 0.9 if it answers Metadata, and then does not answer a second ApiVersions either. A modern
        broker that was only slow answers the second one, and must not be treated as an old one.
        """
        connection = self._open(broker)
        try:
            connection.request(_METADATA)
        except ConnectionLost as error:
            if self._sasl:  # a modern broker, too, closes the connection on Metadata before a login
                with suppress(ConnectionLost):
                    return self._modern(broker, self._open(broker))
            if self._tls is None:
                check_no_tls(broker.host, broker.port, Deadline.after(self.timeout_s))
            hint = f'; if it runs 0.9, set `generation = "{Generation.V08}"`' if self._uses_kerberos else ""
            raise Unsupported(
                "the broker answers neither ApiVersions nor Metadata: it is no Kafka of 0.8 or later. Clusters of 0.7 "
                f"are found through ZooKeeper{hint}"
            ) from error
        try:
            return self._modern(broker, connection)
        except (ConnectionLost, DeadlineExceeded):
            negotiated = self._old(broker)
            self._known_as_old[broker.address] = time.monotonic()
            return negotiated

    @property
    def _uses_kerberos(self) -> bool:
        """Whether the login is the only one that a broker of 0.9 supports."""
        return self._sasl is not None and self._sasl.mechanism == KERBEROS

    def _old_by_settings(self, broker: Broker) -> NegotiatedConnection:
        if not self.refuses_newer:
            return self._old(broker)
        if self._uses_kerberos:
            return self._old_with_kerberos(broker)
        # With another login no check is needed: it raises an error, because no old broker supports it.
        return self._old(broker) if self._sasl else self._old_as_given(broker)

    def _old_with_kerberos(self, broker: Broker) -> NegotiatedConnection:
        """Connect to a broker of 0.9 with a login: it takes ApiVersions for a token, and closes the connection.

        Newer brokers answer it before a login. They also accept the login of 0.9, and would convert their records then.

        Raises:
            Unsupported: the broker answers ApiVersions.
            DeadlineExceeded: the broker is too slow to tell.
        """
        probe = self._open(broker)
        with closing(probe), suppress(ConnectionLost):
            probe.request(_API_VERSIONS)
            raise Unsupported(_NEWER_THAN_GIVEN)
        self._known_as_old[broker.address] = time.monotonic()
        return self._old(broker)

    def _old_as_given(self, broker: Broker) -> NegotiatedConnection:
        """Connect to a broker that is old as the settings say, and check that it still is.

        Newer brokers convert their records for the old versions, and drop timestamps and headers. So ApiVersions is
        sent on a connection of its own. An old broker never answers it. A modern one does so at about the time at which
        it answers a later Metadata, so nothing waits for the silence of an old broker.

        Raises:
            Unsupported: the broker answers ApiVersions.
        """
        probe = self._open(broker)
        with closing(probe):
            probe.send(_API_VERSIONS)
            negotiated = self._old(broker)
            with closed_on_error(negotiated.connection):
                negotiated.connection.request(_METADATA)
                with suppress(ConnectionLost, DeadlineExceeded):
                    probe.answer(timeout_s=_DELAY_S)
                    raise Unsupported(_NEWER_THAN_GIVEN)
        self._known_as_old[broker.address] = time.monotonic()
        return negotiated

    def _modern(self, broker: Broker, connection: VersionedConnection) -> NegotiatedConnection:
        timeout_s = min(_SILENCE_S, self.timeout_s)
        answer: ApiVersionsResponse = connection.request(_API_VERSIONS, timeout_s=timeout_s)
        if answer.error_code:
            connection.close()
            ErrorCode.check(answer.error_code, NOWHERE)
        versions = ApiVersionRanges({api.api_key: (api.min_version, api.max_version) for api in answer.api_keys})
        return NegotiatedConnection(
            host=broker.host, connection=connection, versions=versions, generation=Generation.MODERN
        )

    def _old(self, broker: Broker) -> NegotiatedConnection:
        return NegotiatedConnection(
            host=broker.host, connection=self._open(broker), versions=_OLD_VERSIONS, generation=Generation.V08
        )

    def _open(self, broker: Broker) -> VersionedConnection:
        try:
            return self._open_with(broker, self._tls)
        except ConnectFailed as error:
            if isinstance(error.__cause__, NetworkError):  # the handshake of TLS failed, and not the connection
                self._check_tls(broker)
            raise

    def _open_with(self, broker: Broker, tls: ssl.SSLContext | None) -> VersionedConnection:
        conversation = ClientConversation(CLIENT_ID, max_answer_bytes=self.max_answer_bytes)
        return VersionedConnection.open(broker, conversation, timeout_s=self.timeout_s, tls=tls)

    def _check_tls(self, broker: Broker) -> None:
        """Check that a broker that did not end a handshake of TLS is no broker without TLS (fault F03).

        Raises:
            TlsFailed: it answers ApiVersions without TLS.
        """
        with suppress(NetworkError, WireError), closing(self._open_with(broker, None)) as plain:
            plain.request(_API_VERSIONS, timeout_s=min(_SILENCE_S, self.timeout_s))
            raise TlsFailed(NO_TLS_HERE)


def _log_in(negotiated: NegotiatedConnection, sasl: Sasl, timeout_s: float) -> int:
    """Authenticate with SASL, in the framing that the broker supports (KIP-43, KIP-152).

    Returns the milliseconds until the broker demands another login (KIP-368); 0 if it never does.

    Raises:
        AuthenticationFailed: the broker, the token server or Kerberos refuses the login, or the broker does not prove
            that it knows the secret.
        SecretMissing: the secret of the settings does not exist.
        Unsupported: the broker is older than 0.10, and the login is not Kerberos.
        NetworkError: the connection broke, or the token server or the KDC cannot be reached. A broker before 1.0
            refuses a login in this way.
    """
    credentials = sasl.client_credentials
    token = TOKENS.token(credentials, timeout_s=timeout_s) if credentials else None
    mechanism = mechanism_of(sasl, token, host=negotiated.host)
    try:
        return _exchange_tokens(negotiated, mechanism)
    except AuthenticationFailed:
        if credentials:
            TOKENS.forget(credentials)
        TICKETS.forget(sasl)
        raise


def _exchange_tokens(negotiated: NegotiatedConnection, mechanism: Mechanism) -> int:
    connection, versions = negotiated.connection, negotiated.versions
    is_framed = False
    if negotiated.generation is not Generation.V08 or mechanism.name != KERBEROS:  # 0.9 has no SaslHandshake
        version = versions.pick(SaslHandshakeRequest.API)
        _shake_hands(connection, mechanism, version)
        is_framed = version >= _FRAMED_LOGIN_SINCE
    if not is_framed:
        authenticate(mechanism, connection.exchange, send_last=connection.send_frame)
        return 0
    lifetime_ms = 0

    def send_token(token: bytes) -> bytes:
        nonlocal lifetime_ms
        request = SaslAuthenticateRequest(auth_bytes=token)
        versioned = VersionedRequest(request, versions.pick(SaslAuthenticateRequest.API))
        answer: SaslAuthenticateResponse = connection.request(versioned)
        if answer.error_message:
            raise BrokerError(answer.error_message, NOWHERE, answer.error_code)
        ErrorCode.check(answer.error_code, NOWHERE)
        lifetime_ms = answer.session_lifetime_ms
        return bytes(answer.auth_bytes)

    authenticate(mechanism, send_token)
    return lifetime_ms


def _shake_hands(connection: VersionedConnection, mechanism: Mechanism, version: int) -> None:
    """Agree on the mechanism.

    Raises:
        AuthenticationFailed: the broker does not accept it.
    """
    handshake = VersionedRequest(SaslHandshakeRequest(mechanism=mechanism.name), version)
    answer: SaslHandshakeResponse = connection.request(handshake)
    if answer.error_code:
        offered = mechanism.secret.masked(", ".join(answer.mechanisms)) or "none"
        raise AuthenticationFailed(f"the broker does not accept {mechanism.name}; it accepts: {offered}")
