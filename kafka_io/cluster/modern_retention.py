"""Reads the retention of topics from the brokers: one DescribeConfigs for all of them (KIP-133, from 0.11 on)."""

from collections.abc import Iterable

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.cluster.retention import SETTINGS, Retention
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, Corrupt, KafkaIOError
from kafka_io.messages.describe_configs import (
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfigs,
)

_TOPIC = 2
TopicRetentions = dict[str, Retention | KafkaIOError]


def retention_of(brokers: ClusterMetadata, topics: Iterable[str]) -> TopicRetentions:
    """How long each topic's records are kept, or the brokers' error, for example a missing authorization.

    Raises:
        NetworkError: no broker can be reached.
        Unsupported: the brokers are older than 0.11.
    """
    names = sorted(set(topics))
    resources = tuple(
        ConfigResource(resource_type=_TOPIC, resource_name=name, configuration_keys=SETTINGS) for name in names
    )

    def ask(link: ModernBrokerConnection) -> DescribeConfigsResponse:
        return link.request(DescribeConfigsRequest(resources=resources))

    answer = brokers.retry(lambda: brokers.from_any(ask))
    told = {one.resource_name: one for one in answer.results if one.resource_type == _TOPIC}
    return {name: _kept(told.get(name)) for name in names}


def _kept(answer: DescribedConfigs | None) -> Retention | KafkaIOError:
    if answer is None:
        return Corrupt("the answer lacks one of the requested topics")
    refused = ErrorCode.error_of(answer.error_code, NOWHERE)
    return refused or Retention.of({one.name: one.value for one in answer.configs})
