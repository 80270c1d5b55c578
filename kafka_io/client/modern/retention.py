"""What the brokers' settings say of topics: one DescribeConfigs for all of them (KIP-133, from 0.11 on)."""

from collections.abc import Iterable

from kafka_io.client.modern.brokers import Brokers
from kafka_io.client.modern.link import ModernLink
from kafka_io.client.retention import SETTINGS, Retention
from kafka_io.error_codes import MODERN, error_of
from kafka_io.errors import NOWHERE, Corrupt, KafkaIOError
from kafka_io.messages.describe_configs import (
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfigs,
)

_TOPIC = 2
Kept = dict[str, Retention | KafkaIOError]


def retention_of(brokers: Brokers, topics: Iterable[str]) -> Kept:
    """How long each topic's records are kept, or why the brokers do not say, as when we may not ask.

    Raises:
        NetworkError: no broker can be reached.
        Unsupported: they are older than 0.11, and cannot be asked.
    """
    names = sorted(set(topics))
    resources = tuple(
        ConfigResource(resource_type=_TOPIC, resource_name=name, configuration_keys=SETTINGS) for name in names
    )

    def ask(link: ModernLink) -> DescribeConfigsResponse:
        return link.request(DescribeConfigsRequest(resources=resources))

    answer = brokers.patiently(lambda: brokers.of_any(ask))
    told = {one.resource_name: one for one in answer.results if one.resource_type == _TOPIC}
    return {name: _kept(told.get(name)) for name in names}


def _kept(answer: DescribedConfigs | None) -> Retention | KafkaIOError:
    if answer is None:
        return Corrupt("an answer without one of the topics that were asked for")
    refused = error_of(answer.error_code, NOWHERE, MODERN)
    return refused or Retention.of({one.name: one.value for one in answer.configs})
