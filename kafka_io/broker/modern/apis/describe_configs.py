"""DescribeConfigs: the settings of topics, which are this broker's own (KIP-133)."""

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.config import ModernBrokerConfig
from kafka_io.broker.modern.node import Caller, Node
from kafka_io.errors import BrokerError
from kafka_io.messages.describe_configs import (
    ConfigEntry,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfigs,
)

_TOPIC = 2
_OF_BROKER = 4  # they are from the broker's own file
_LONG, _LIST = 5, 7
_NO_LIMIT = -1
_POLICY = "cleanup.policy"


def describe_configs(request: DescribeConfigsRequest, node: Node, _caller: Caller) -> DescribeConfigsResponse:
    """The settings of each topic, or those of them that were asked for."""
    return DescribeConfigsResponse(results=tuple(_described(one, node) for one in request.resources))


def _described(asked: ConfigResource, node: Node) -> DescribedConfigs:
    code, reason = _refusal(asked, node)
    settings = {} if code else _settings(node.config)
    wanted = settings if asked.configuration_keys is None else asked.configuration_keys
    return DescribedConfigs(
        error_code=code,
        error_message=reason,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=tuple(_entry(name, settings[name]) for name in wanted if name in settings),
    )


def _refusal(asked: ConfigResource, node: Node) -> tuple[int, str | None]:
    if asked.resource_type != _TOPIC:
        return Code.INVALID_REQUEST, "only topics are described"
    try:
        node.topics.find(asked.resource_name)
    except BrokerError as error:
        return error.code, error.reason
    return Code.NONE, None


def _settings(config: ModernBrokerConfig) -> dict[str, str]:
    limits = {"retention.ms": config.retention_ms, "retention.bytes": config.retention_bytes}
    told = {name: str(_NO_LIMIT if limit is None else limit) for name, limit in limits.items()}
    return {_POLICY: "delete", **told}


def _entry(name: str, value: str) -> ConfigEntry:
    return ConfigEntry(
        name=name,
        value=value,
        read_only=False,
        is_sensitive=False,
        config_source=_OF_BROKER,
        config_type=_LIST if name == _POLICY else _LONG,
    )
