"""DescribeConfigs: settings of topics and brokers (KIP-133)."""

from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Bool, Int8, Int16, Int32, String


class ConfigSynonym(Struct):
    """Another place that could set the same, in the order in which they are asked."""

    name: String
    value: String | None
    source: Int8


class ConfigEntry(Struct):
    """One setting. Where it comes from is told from v1 on; v0 only tells whether it is a default."""

    name: String
    value: String | None
    read_only: Bool
    is_default: Bool = wire(until=0, default=False)
    config_source: Int8 = wire(since=1, default=-1, ignorable=True)  # KIP-226: where the value comes from
    is_sensitive: Bool
    synonyms: tuple[ConfigSynonym, ...] = wire(since=1, default=(), ignorable=True)  # KIP-226
    config_type: Int8 = wire(since=3, default=0, ignorable=True)  # KIP-569
    documentation: String | None = wire(since=3, default=None, ignorable=True)  # KIP-569


class DescribedConfigs(Struct):
    """The settings of one topic or broker."""

    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String
    configs: tuple[ConfigEntry, ...]


class DescribeConfigsResponse(Struct):
    """Settings by topic or broker."""

    throttle_time_ms: Int32 = 0
    results: tuple[DescribedConfigs, ...]


class ConfigResource(Struct):
    """A topic (type 2) or broker (4), and which settings; None is all."""

    resource_type: Int8
    resource_name: String
    configuration_keys: tuple[String, ...] | None = None


class DescribeConfigsRequest(Request[DescribeConfigsResponse], key=32, versions=(0, 4), flexible_from=4):
    """Whose settings to tell."""

    resources: tuple[ConfigResource, ...]
    include_synonyms: Bool = wire(since=1, default=False)  # KIP-226
    include_documentation: Bool = wire(since=3, default=False)  # KIP-569
