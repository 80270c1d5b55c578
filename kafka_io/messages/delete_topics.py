"""DeleteTopics: asks the controller to delete topics (KIP-4), from v6 on also by topic id (KIP-516)."""

from kafka_io.messages.shared import ThrottledAnswer
from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import NULL_UUID, Int16, Int32, String, Uuid


class DeletedTopic(Struct):
    """The error code if one topic was not deleted."""

    name: String | None = wire(null_since=6)  # KIP-516: null if only the id is known
    topic_id: Uuid = wire(since=6, default=NULL_UUID, ignorable=True)  # KIP-516
    error_code: Int16
    error_message: String | None = wire(since=5, default=None, ignorable=True)  # KIP-599


class DeleteTopicsResponse(ThrottledAnswer, since=1):
    """One result for each topic of the request."""

    responses: tuple[DeletedTopic, ...]


class DeleteTopic(Struct):
    """A topic to delete, by name or id, from v6 on."""

    name: String | None = None
    topic_id: Uuid = NULL_UUID


class DeleteTopicsRequest(Request[DeleteTopicsResponse], key=20, versions=(0, 6), flexible_from=4):
    """The topics to delete: `topic_names` up to v5, `topics` from v6 on."""

    topics: tuple[DeleteTopic, ...] = wire(since=6, default=())  # KIP-516: by id
    topic_names: tuple[String, ...] = wire(until=5, default=(), ignorable=True)
    timeout_ms: Int32
