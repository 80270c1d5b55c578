"""CreateTopics: topics to make, asked from the controller (KIP-4)."""

from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import NULL_UUID, Bool, Int8, Int16, Int32, String, Uuid


class CreatedTopicConfig(Struct):
    """A setting of a topic that was made."""

    name: String
    value: String | None
    read_only: Bool
    config_source: Int8 = -1
    is_sensitive: Bool


class CreatedTopic(Struct):
    """Whether one topic was made, and how."""

    name: String
    topic_id: Uuid = wire(since=7, default=NULL_UUID, ignorable=True)  # KIP-516: tells incarnations apart
    error_code: Int16
    error_message: String | None = wire(since=1, default=None, ignorable=True)  # KIP-108: a policy says why it refuses
    topic_config_error_code: Int16 = wire(since=5, tag=0, default=0, ignorable=True)  # KIP-525: what was created
    num_partitions: Int32 = wire(since=5, default=-1, ignorable=True)  # KIP-525
    replication_factor: Int16 = wire(since=5, default=-1, ignorable=True)  # KIP-525
    configs: tuple[CreatedTopicConfig, ...] | None = wire(since=5, default=None, ignorable=True)  # KIP-525


class CreateTopicsResponse(Struct):
    """What was made."""

    throttle_time_ms: Int32 = wire(since=2, default=0, ignorable=True)  # KIP-124: request quotas
    topics: tuple[CreatedTopic, ...]


class ReplicaAssignment(Struct):
    """The brokers of one partition, its leader first."""

    partition_index: Int32
    broker_ids: tuple[Int32, ...]


class TopicConfig(Struct):
    """A setting that differs from the broker's."""

    name: String
    value: String | None


class CreatableTopic(Struct):
    """One topic. With `assignments` the two numbers are -1; from v4 on -1 alone is the broker's default."""

    name: String
    num_partitions: Int32
    replication_factor: Int16
    assignments: tuple[ReplicaAssignment, ...]
    configs: tuple[TopicConfig, ...]


class CreateTopicsRequest(Request[CreateTopicsResponse], key=19, versions=(0, 7), flexible_from=5):
    """Topics to make, or only to check."""

    topics: tuple[CreatableTopic, ...]
    timeout_ms: Int32 = 60000
    validate_only: Bool = wire(since=1, default=False)  # KIP-108
