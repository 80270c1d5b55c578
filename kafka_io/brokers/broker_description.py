"""What brokers say about themselves and about their client: the release of Kafka, and the rights for topics (KIP-430).

Brokers do not name their release. The versions of their APIs show it.
"""

from collections.abc import Mapping
from enum import IntEnum

from kafka_io.brokers.cluster_metadata import ClusterMetadata, metadata_answer
from kafka_io.brokers.modern_connection import ModernBrokerConnection
from kafka_io.messages.metadata import NO_OPERATIONS, MetadataRequest, MetadataResponse
from kafka_io.wire.conversation import ApiVersionRanges

_PRODUCE, _FETCH, _LIST_OFFSETS, _METADATA = range(4)
# The releases, and the last versions of these four APIs that they support, oldest first.
_RELEASES: tuple[tuple[str, tuple[int, int, int, int]], ...] = (
    ("0.10.0", (2, 2, 0, 1)),
    ("0.10.1 or 0.10.2", (2, 3, 1, 2)),
    ("0.11", (3, 5, 2, 4)),
    ("1.0", (5, 6, 2, 5)),
    ("1.1", (5, 7, 2, 5)),
    ("2.0", (6, 8, 3, 6)),
    ("2.1", (7, 10, 4, 7)),
    ("2.2", (7, 10, 5, 7)),
    ("2.3", (7, 11, 5, 8)),
    ("2.4 to 2.6", (8, 11, 5, 9)),
    ("2.7", (8, 12, 5, 9)),
    ("2.8", (9, 12, 6, 11)),
    ("3.0", (9, 12, 7, 11)),
    ("3.1 to 3.4", (9, 13, 7, 12)),
    ("3.5 or 3.6", (9, 15, 8, 12)),
    ("3.7", (10, 16, 8, 12)),
    ("3.8", (11, 16, 8, 12)),
    ("3.9", (11, 17, 9, 12)),
    ("4.0", (12, 17, 10, 13)),
    ("4.1", (13, 18, 10, 13)),
    ("4.2 or later", (13, 18, 11, 13)),
)

_REPORTED_SINCE = 8  # version of Metadata


def release_of(versions: ApiVersionRanges) -> str:
    """The newest release of which a broker supports everything, such as "3.9"; "0.8 or 0.9" for brokers before 0.10."""
    offered = tuple(versions.offered.get(api, (-1, -1))[1] for api in (_PRODUCE, _FETCH, _LIST_OFFSETS, _METADATA))
    matching = [name for name, last in _RELEASES if all(map(int.__ge__, offered, last))]
    return matching[-1] if matching else "0.8 or 0.9"


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
        return metadata_answer(connection, MetadataRequest(topics=None, include_topic_authorized_operations=True))

    answer = metadata.from_any(request)
    return {
        topic.name: _operations(topic.topic_authorized_operations)
        for topic in (answer.topics if answer else ())
        if topic.name is not None and topic.topic_authorized_operations != NO_OPERATIONS
    }


def _operations(bits: int) -> frozenset[TopicOperation]:
    """The operations whose bits are set: bit N is the operation with the code N."""
    return frozenset(operation for operation in TopicOperation if bits & 1 << operation)
