"""DescribeConfigs answers with the settings of the broker for each topic."""

import pytest

from kafka_io.error_codes import ErrorCode
from kafka_io.messages.describe_configs import ConfigResource, DescribeConfigsRequest, DescribedConfigs
from tests.kafka_io.testing.modern.conftest import Connect, StartModern
from tests.kafka_io.testing.modern.talk import Client

TOPIC, BROKER = 2, 4


def describe(
    client: Client, name: str = "clicks", *, kind: int = TOPIC, keys: tuple[str, ...] | None = None, version: int = 4
) -> DescribedConfigs:
    resource = ConfigResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    [described] = client.ask(DescribeConfigsRequest(resources=(resource,)), version).results
    assert (described.resource_type, described.resource_name) == (kind, name)
    return described


def values(described: DescribedConfigs) -> dict[str, str | None]:
    return {config.name: config.value for config in described.configs}


@pytest.mark.parametrize("version", range(5))
def test_a_setting_without_a_limit_is_described_as_minus_one(version: int, client: Client) -> None:
    assert values(describe(client, version=version)) == {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
    }


def test_only_the_requested_settings_are_described_with_their_limits(
    start_modern: StartModern, connect: Connect
) -> None:
    client = connect(start_modern(retention_ms=3_600_000, retention_bytes=5000))
    client.create("clicks")
    assert values(describe(client, keys=("retention.ms", "retention.bytes", "colour"))) == {
        "retention.ms": "3600000",
        "retention.bytes": "5000",
    }


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [(TOPIC, "nobody", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (BROKER, "1", ErrorCode.INVALID_REQUEST)],
)
def test_an_unknown_topic_or_another_resource_gets_an_error_code(
    kind: int, name: str, code: ErrorCode, client: Client
) -> None:
    described = describe(client, name, kind=kind)
    assert (described.error_code, described.configs) == (code, ())
    assert described.error_message
