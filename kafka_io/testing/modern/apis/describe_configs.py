"""DescribeConfigs: the settings of topics, which are the settings of this broker (KIP-133)."""

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError
from kafka_io.messages.describe_configs import (
    ConfigEntry,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfigs,
)
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.node import BrokerNode, Caller

_TOPIC_RESOURCE = 2
_STATIC_BROKER_CONFIG = 4  # the source of the setting: the configuration file of the broker
_LONG, _LIST = 5, 7
_NO_LIMIT = -1
_CLEANUP_POLICY = "cleanup.policy"


def describe_configs(request: DescribeConfigsRequest, node: BrokerNode, _caller: Caller) -> DescribeConfigsResponse:
    """The settings of each topic: all of them, or those that the request names."""
    return DescribeConfigsResponse(results=tuple(_describe(resource, node) for resource in request.resources))


def _describe(resource: ConfigResource, node: BrokerNode) -> DescribedConfigs:
    code, reason = _check_resource(resource, node)
    settings = {} if code else _settings(node.config)
    names = settings if resource.configuration_keys is None else resource.configuration_keys
    return DescribedConfigs(
        error_code=code,
        error_message=reason,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(_entry(name, settings[name]) for name in names if name in settings),
    )


def _check_resource(resource: ConfigResource, node: BrokerNode) -> tuple[int, str | None]:
    """The error code and its reason if the resource cannot be described, else code 0."""
    if resource.resource_type != _TOPIC_RESOURCE:
        return ErrorCode.INVALID_REQUEST, "the broker describes topics only"
    try:
        node.topics.find(resource.resource_name)
    except BrokerError as error:
        return error.code, error.reason
    return ErrorCode.NONE, None


def _settings(config: ModernBrokerConfig) -> dict[str, str]:
    limits = {"retention.ms": config.retention_ms, "retention.bytes": config.retention_bytes}
    retention = {name: str(_NO_LIMIT if limit is None else limit) for name, limit in limits.items()}
    return {_CLEANUP_POLICY: "delete", **retention}


def _entry(name: str, value: str) -> ConfigEntry:
    return ConfigEntry(
        name=name,
        value=value,
        read_only=False,
        is_sensitive=False,
        config_source=_STATIC_BROKER_CONFIG,
        config_type=_LIST if name == _CLEANUP_POLICY else _LONG,
    )
