"""Connecting to a broker from 0.8 on, and finding out what it speaks: by asking, never by guessing.

A broker from 0.10 on answers ApiVersions. One of 0.8 closes the connection instead, and one of 0.9 neither answers nor
closes [kafka-0.8: Versions]; both answer Metadata v0. They do not check versions, so that something was answered proves
no version: for them the table is fixed.
"""

import ssl
from dataclasses import dataclass
from typing import Any, Self

from kafka_io.brokers.login import log_in
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, ConnectionLost, DeadlineExceeded, Unsupported
from kafka_io.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka_io.messages.metadata import MetadataRequest
from kafka_io.model import Broker, Generation
from kafka_io.net.connection import Connection
from kafka_io.net.security import Sasl, Security
from kafka_io.net.tls import tls_context
from kafka_io.wire.conversation import ApiVersionRanges, ClientConversation, VersionedRequest

CLIENT_ID = "penstock"
VersionedConnection = Connection[VersionedRequest[Any], Any]

# By API number, what 0.8.2 and 0.9 have in common [kafka-0.8: Versions], and the APIs of groups: 0.8 closes when asked
# for these.
_GROUP_APIS = range(11, 17)
_OLD_VERSIONS = ApiVersionRanges(
    {0: (0, 0), 1: (0, 0), 2: (0, 0), 3: (0, 0), 8: (0, 1), 9: (0, 1), 10: (0, 0), **dict.fromkeys(_GROUP_APIS, (0, 0))}
)
_SILENCE_S = 2.0  # how long a broker may say nothing to ApiVersions until the next question is tried
_ASK_VERSIONS = VersionedRequest(ApiVersionsRequest(), 0)  # every broker that knows any version knows this one
_ASK_BROKERS = VersionedRequest(MetadataRequest(topics=()), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class NegotiatedConnection:
    """An open connection, and what the broker at its other end speaks."""

    connection: VersionedConnection
    versions: ApiVersionRanges
    generation: Generation


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """How brokers of one cluster are connected to.

    Args:
        timeout_s: for connecting, and for each answer.
        max_answer_bytes: a larger answer is refused.
        generation: what the brokers speak, if it is known already; a cluster of 0.9 is found out slowly.
        tls: what makes a connection private and the broker proven; plain text without.
        sasl: how we log in; not at all without.
    """

    timeout_s: float
    max_answer_bytes: int
    generation: Generation | None = None
    tls: ssl.SSLContext | None = None
    sasl: Sasl | None = None

    @classmethod
    def of(cls, security: Security, **rest: Any) -> Self:
        """With the security of the settings.

        Raises:
            TlsFailed: its files cannot be used.
            SecretMissing: the password of its key is not where the settings say.
        """
        return cls(tls=tls_context(security.tls) if security.tls else None, sasl=security.sasl, **rest)

    def dial(self, broker: Broker) -> NegotiatedConnection:
        """A connection to `broker`, once it has told what it speaks.

        Raises:
            ConnectFailed: its address leads nowhere.
            DeadlineExceeded: it does not answer in time.
            Unsupported: it speaks 0.7, or nothing we know.
            TlsFailed: it has not proven itself.
            AuthenticationFailed: it refuses us.
        """
        dialled = self._dial(broker)
        if self.sasl is not None:
            try:
                log_in(dialled.connection, dialled.versions, self.sasl)
            except BaseException:
                dialled.connection.close()
                raise
        return dialled

    def _dial(self, broker: Broker) -> NegotiatedConnection:
        if self.generation is Generation.V08:
            return self._old(broker)
        connection = self._connect(broker)
        try:
            versions = _ask_versions(connection, self.timeout_s)
        except (ConnectionLost, DeadlineExceeded):
            return self._dial_old(broker)
        return NegotiatedConnection(connection=connection, versions=versions, generation=Generation.MODERN)

    def _dial_old(self, broker: Broker) -> NegotiatedConnection:
        """`broker` did not answer ApiVersions: it is old if it answers Metadata, and again not that."""
        connection = self._connect(broker)
        try:
            connection.ask(_ASK_BROKERS)
        except ConnectionLost as error:
            raise Unsupported(
                "the broker answers neither ApiVersions nor Metadata: it is no Kafka of 0.8 or later. Clusters of 0.7 "
                "are found through ZooKeeper"
            ) from error
        try:
            # It lives. A modern broker that was only slow answers now, and must not pass for an old one.
            versions = _ask_versions(connection, self.timeout_s)
        except (ConnectionLost, DeadlineExceeded):
            return self._old(broker)
        return NegotiatedConnection(connection=connection, versions=versions, generation=Generation.MODERN)

    def _old(self, broker: Broker) -> NegotiatedConnection:
        return NegotiatedConnection(connection=self._connect(broker), versions=_OLD_VERSIONS, generation=Generation.V08)

    def _connect(self, broker: Broker) -> VersionedConnection:
        conversation = ClientConversation(CLIENT_ID, max_answer_bytes=self.max_answer_bytes)
        return VersionedConnection.open(broker, conversation, timeout_s=self.timeout_s, tls=self.tls)


def _ask_versions(connection: VersionedConnection, timeout_s: float) -> ApiVersionRanges:
    answer: ApiVersionsResponse = connection.ask(_ASK_VERSIONS, timeout_s=min(_SILENCE_S, timeout_s))
    if answer.error_code:
        connection.close()
        ErrorCode.check(answer.error_code, NOWHERE)
    return ApiVersionRanges({one.api_key: (one.min_version, one.max_version) for one in answer.api_keys})
