"""CreateTopics: asks the controller to create topics (KIP-4)."""

from kafka_io.messages.shared import PartitionRow, ThrottledAnswer
from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import NULL_UUID, Bool, Int8, Int16, Int32, String, Uuid


class CreatedTopicConfig(Struct):
    """A setting of a created topic."""

    name: String
    value: String | None
    read_only: Bool
    config_source: Int8 = -1
    is_sensitive: Bool


class CreatedTopic(Struct):
    """The error code if one topic was not created; otherwise its partitions and settings."""

    name: String
    topic_id: Uuid = wire(since=7, default=NULL_UUID, ignorable=True)  # KIP-516: distinguishes incarnations
    error_code: Int16
    error_message: String | None = wire(since=1, default=None, ignorable=True)  # KIP-108: a policy says why it refuses
    topic_config_error_code: Int16 = wire(since=5, tag=0, default=0, ignorable=True)  # KIP-525: created settings
    num_partitions: Int32 = wire(since=5, default=-1, ignorable=True)  # KIP-525
    replication_factor: Int16 = wire(since=5, default=-1, ignorable=True)  # KIP-525
    configs: tuple[CreatedTopicConfig, ...] | None = wire(since=5, default=None, ignorable=True)  # KIP-525


class CreateTopicsResponse(ThrottledAnswer, since=2):
    """One result for each topic of the request."""

    topics: tuple[CreatedTopic, ...]


class ReplicaAssignment(PartitionRow):
    """The brokers that hold one partition. The first one is its preferred leader."""

    broker_ids: tuple[Int32, ...]


class TopicConfig(Struct):
    """A setting that differs from the broker's default."""

    name: String
    value: String | None


class CreatableTopic(Struct):
    """A topic to create.

    With `assignments`, `num_partitions` and `replication_factor` are -1. Without them, -1 stands for the broker's
    default from v4 on.
    """

    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: tuple[ReplicaAssignment, ...]
    configs: tuple[TopicConfig, ...]


class CreateTopicsRequest(Request[CreateTopicsResponse], key=19, versions=(0, 7), flexible_from=5):
    """The topics to create, or only to check."""

    topics: tuple[CreatableTopic, ...]
    timeout_ms: Int32 = 60000
    validate_only: Bool = wire(since=1, default=False)  # KIP-108
