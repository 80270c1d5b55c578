"""The settings of topics are the broker's own."""

import pytest

from kafka_io.broker.modern.codes import Code
from kafka_io.messages.describe_configs import ConfigResource, DescribeConfigsRequest, DescribedConfigs
from tests.kafka_io.broker.modern.conftest import Connect, StartModern
from tests.kafka_io.broker.modern.talk import Client

TOPIC, BROKER = 2, 4


def describe(
    client: Client, name: str = "clicks", *, kind: int = TOPIC, keys: tuple[str, ...] | None = None, version: int = 4
) -> DescribedConfigs:
    asked = ConfigResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    [told] = client.ask(DescribeConfigsRequest(resources=(asked,)), version).results
    assert (told.resource_type, told.resource_name) == (kind, name)
    return told


def values(told: DescribedConfigs) -> dict[str, str | None]:
    return {one.name: one.value for one in told.configs}


@pytest.mark.parametrize("version", range(5))
def test_what_is_not_limited_is_minus_one(version: int, client: Client) -> None:
    assert values(describe(client, version=version)) == {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
    }


def test_limits_are_told_and_only_what_was_asked_for(start_modern: StartModern, connect: Connect) -> None:
    client = connect(start_modern(retention_ms=3_600_000, retention_bytes=5000))
    client.create("clicks")
    assert values(describe(client, keys=("retention.ms", "retention.bytes", "colour"))) == {
        "retention.ms": "3600000",
        "retention.bytes": "5000",
    }


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [(TOPIC, "nobody", Code.UNKNOWN_TOPIC_OR_PARTITION), (BROKER, "1", Code.INVALID_REQUEST)],
)
def test_what_is_not_there_has_a_code(kind: int, name: str, code: Code, client: Client) -> None:
    told = describe(client, name, kind=kind)
    assert (told.error_code, told.configs) == (code, ())
    assert told.error_message
