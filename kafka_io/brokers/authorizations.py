"""What the client may do with topics, as brokers from 2.3 on report it (KIP-430)."""

from collections.abc import Mapping
from enum import IntEnum

from kafka_io.brokers.cluster_metadata import ClusterMetadata
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.messages.metadata import NO_OPERATIONS, MetadataRequest, MetadataResponse

_REPORTED_SINCE = 8  # version of Metadata


class TopicOperation(IntEnum):
    """An operation of Kafka's ACLs for topics that a reader needs, with its code."""

    READ = 3
    DESCRIBE = 8
    DESCRIBE_CONFIGS = 10


def topic_operations(metadata: ClusterMetadata) -> Mapping[str, frozenset[TopicOperation]]:
    """The operations that are allowed for each topic that the client sees; nothing for brokers that do not report it.

    Brokers without an authorizer report every operation. A topic that the client may not describe is not listed.

    Raises:
        NetworkError: no broker can be reached.
    """

    def request(connection: ModernBrokerConnection) -> MetadataResponse | None:
        if connection.versions.pick(MetadataRequest.API) < _REPORTED_SINCE:
            return None
        return connection.request(MetadataRequest(topics=None, include_topic_authorized_operations=True))

    answer = metadata.from_any(request)
    return {
        topic.name: _operations(topic.topic_authorized_operations)
        for topic in (answer.topics if answer else ())
        if topic.name is not None and topic.topic_authorized_operations != NO_OPERATIONS
    }


def _operations(bits: int) -> frozenset[TopicOperation]:
    """The operations whose bits are set: bit N is the operation with the code N."""
    return frozenset(operation for operation in TopicOperation if bits & 1 << operation)
