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
from kafka_io.testing.modern.apis.results import attempt
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
    settings = attempt(lambda: _settings(resource, node), dict[str, str]())
    names = settings.value if resource.configuration_keys is None else resource.configuration_keys
    return DescribedConfigs(
        error_code=settings.code,
        error_message=settings.reason,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(
            ConfigEntry(
                name=name,
                value=settings.value[name],
                read_only=False,
                is_sensitive=False,
                config_source=_STATIC_BROKER_CONFIG,
                config_type=_LIST if name == _CLEANUP_POLICY else _LONG,
            )
            for name in names
            if name in settings.value
        ),
    )


def _settings(resource: ConfigResource, node: BrokerNode) -> dict[str, str]:
    if resource.resource_type != _TOPIC_RESOURCE:
        raise BrokerError("the broker describes topics only", code=ErrorCode.INVALID_REQUEST)
    node.topics.find(resource.resource_name)  # raises an error if there is no such topic
    limits = {"retention.ms": node.config.retention_ms, "retention.bytes": node.config.retention_bytes}
    retention = {name: str(_NO_LIMIT if limit is None else limit) for name, limit in limits.items()}
    return {_CLEANUP_POLICY: "delete", **retention}
