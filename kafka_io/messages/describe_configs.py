"""DescribeConfigs: asks for the settings of topics and brokers (KIP-133)."""

from kafka_io.messages.echoes import check_echo
from kafka_io.messages.shared import ThrottledAnswer
from kafka_io.wire.schema import MIB, Request, Struct, wire
from kafka_io.wire.types import MANY_ITEMS, Bool, Int8, Int16, String


class ConfigSynonym(Struct):
    """Another place where the same setting can be set. The broker uses the first one that has a value."""

    name: String
    value: String | None
    source: Int8


class ConfigEntry(Struct):
    """One setting. From v1 on `config_source` says where it is set; v0 only says whether it is a default."""

    name: String
    value: String | None
    read_only: Bool
    is_default: Bool = wire(until=0, default=False)
    config_source: Int8 = wire(since=1, default=-1, ignorable=True)  # KIP-226: the place where the value is set
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


class DescribeConfigsResponse(ThrottledAnswer):
    """The settings of each topic or broker in the request."""

    results: tuple[DescribedConfigs, ...] = wire(max_items=MANY_ITEMS)


class ConfigResource(Struct):
    """A topic (type 2) or a broker (type 4), and the names of its settings; None requests all settings."""

    resource_type: Int8
    resource_name: String
    configuration_keys: tuple[String, ...] | None = None


class DescribeConfigsRequest(
    Request[DescribeConfigsResponse], key=32, versions=(0, 4), flexible_from=4, max_answer_bytes=32 * MIB
):
    """The topics and brokers whose settings are requested."""

    resources: tuple[ConfigResource, ...]
    include_synonyms: Bool = wire(since=1, default=False)  # KIP-226
    include_documentation: Bool = wire(since=3, default=False)  # KIP-569

    def check_answer(self, answer: DescribeConfigsResponse, _version: int, /) -> None:
        check_echo(
            ((resource.resource_type, resource.resource_name) for resource in self.resources),
            ((result.resource_type, result.resource_name) for result in answer.results),
        )
