"""ApiVersions: asks for the versions that the broker supports (KIP-35, KIP-511).

A broker that does not support the version of the request answers in v0.
"""

from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Bool, Int16, Int32, Int64, String


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


class ApiVersionsRequest(Request[ApiVersionsResponse], key=18, versions=(0, 4), flexible_from=3):
    """The name and the version of the client's software."""

    client_software_name: String = wire(since=3, default="", ignorable=True)  # KIP-511: brokers can count their clients
    client_software_version: String = wire(since=3, default="", ignorable=True)  # KIP-511
