"""DeleteTopics: topics to delete, asked from the controller (KIP-4). From v6 on also by id (KIP-516)."""

from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import NULL_UUID, Int16, Int32, String, Uuid


class DeletedTopic(Struct):
    """Whether one topic is gone."""

    name: String | None = wire(null_since=6)  # KIP-516: null where only the id is known
    topic_id: Uuid = wire(since=6, default=NULL_UUID, ignorable=True)  # KIP-516
    error_code: Int16
    error_message: String | None = wire(since=5, default=None, ignorable=True)  # KIP-599


class DeleteTopicsResponse(Struct):
    """What is gone."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)  # KIP-124: request quotas
    responses: tuple[DeletedTopic, ...]


class DeleteTopic(Struct):
    """One topic, by name or id, from v6 on."""

    name: String | None = None
    topic_id: Uuid = NULL_UUID


class DeleteTopicsRequest(Request[DeleteTopicsResponse], key=20, versions=(0, 6), flexible_from=4):
    """Topics to delete: `topic_names` up to v5, `topics` from v6 on."""

    topics: tuple[DeleteTopic, ...] = wire(since=6, default=())  # KIP-516: by id
    topic_names: tuple[String, ...] = wire(until=5, default=(), ignorable=True)
    timeout_ms: Int32
