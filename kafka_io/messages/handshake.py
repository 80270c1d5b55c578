"""The first requests on a connection: ApiVersions (KIP-35, KIP-511), and the two of a login with SASL.

ApiVersions asks for the versions that the broker supports; a broker that does not support the version of this request
answers in v0. SaslHandshake chooses the mechanism of the login (KIP-43), SaslAuthenticate carries its bytes (KIP-152).
After SaslHandshake v0 the bytes follow without any header, after v1 as SaslAuthenticate requests.
"""

from kafka_io.wire.schema import KIB, Request, Struct, wire
from kafka_io.wire.types import Bool, Int16, Int32, Int64, String, WireBytes


class ApiVersion(Struct):
    """The versions of one API that the broker supports."""

    api_key: Int16
    min_version: Int16
    max_version: Int16


class SupportedFeature(Struct):
    """A feature that the broker can enable (KIP-584)."""

    name: String
    min_version: Int16
    max_version: Int16


class FinalizedFeature(Struct):
    """A feature that is enabled in the whole cluster."""

    name: String
    max_version_level: Int16
    min_version_level: Int16


class ApiVersionsResponse(Struct):
    """The APIs and the features of the broker."""

    error_code: Int16
    api_keys: tuple[ApiVersion, ...]
    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)  # KIP-124: request quotas
    supported_features: tuple[SupportedFeature, ...] = wire(since=3, tag=0, default=(), ignorable=True)  # KIP-584
    finalized_features_epoch: Int64 = wire(since=3, tag=1, default=-1, ignorable=True)  # KIP-584
    finalized_features: tuple[FinalizedFeature, ...] = wire(since=3, tag=2, default=(), ignorable=True)  # KIP-584
    zk_migration_ready: Bool = wire(since=3, tag=3, default=False, ignorable=True)  # KIP-866: ZooKeeper to KRaft


class ApiVersionsRequest(
    Request[ApiVersionsResponse], key=18, versions=(0, 4), flexible_from=3, max_answer_bytes=64 * KIB
):
    """The name and the version of the client's software."""

    client_software_name: String = wire(since=3, default="", ignorable=True)  # KIP-511: brokers can count their clients
    client_software_version: String = wire(since=3, default="", ignorable=True)  # KIP-511


class SaslHandshakeResponse(Struct):
    """The mechanisms that the broker supports."""

    error_code: Int16
    mechanisms: tuple[String, ...]


class SaslHandshakeRequest(Request[SaslHandshakeResponse], key=17, versions=(0, 1), max_answer_bytes=64 * KIB):
    """The mechanism of the login."""

    mechanism: String


class SaslAuthenticateResponse(Struct):
    """The broker's bytes of the mechanism; `session_lifetime_ms` is 0 if the login does not expire."""

    error_code: Int16
    error_message: String | None
    auth_bytes: WireBytes
    session_lifetime_ms: Int64 = wire(since=1, default=0, ignorable=True)  # KIP-368: log in again before it ends


class SaslAuthenticateRequest(
    Request[SaslAuthenticateResponse], key=36, versions=(0, 2), flexible_from=2, max_answer_bytes=64 * KIB
):
    """The client's bytes of the mechanism."""

    auth_bytes: WireBytes
