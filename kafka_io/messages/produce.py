"""Produce: sends records to the leaders of partitions. With acks 0 there is no answer.

From v13 on topics have ids instead of names (KIP-516).
"""

from kafka_io.messages.echoes import check_echo, partitions_in
from kafka_io.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import NULL_UUID, Int16, Int32, Int64, String, Uuid, WireBytes

BY_ID_SINCE = 13


class RecordError(Struct):
    """A record because of which the broker refused the whole batch (KIP-467)."""

    batch_index: Int32
    batch_index_error_message: String | None = None


class ProducePartitionResponse(Struct):
    """The offset of the first record, or an error code.

    `log_append_time_ms` is -1 unless the broker sets the timestamps.
    """

    index: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Int64 = wire(since=2, default=-1, ignorable=True)  # KIP-32
    log_start_offset: Int64 = wire(since=5, default=-1, ignorable=True)  # KIP-192: detects expired producers
    record_errors: tuple[RecordError, ...] = wire(since=8, default=(), ignorable=True)  # KIP-467
    error_message: String | None = wire(since=8, default=None, ignorable=True)  # KIP-467
    current_leader: LeaderIdAndEpoch = wire(since=10, tag=0, default=LeaderIdAndEpoch())  # KIP-951


class ProducedTopicNameOrId(Struct):
    """The first fields of a topic: its name up to v12, and its id from v13 on."""

    name: String = wire(until=12, default="", ignorable=True)
    topic_id: Uuid = wire(since=BY_ID_SINCE, default=NULL_UUID, ignorable=True)  # KIP-516: distinguishes incarnations


class ProduceTopicResponse(ProducedTopicNameOrId):
    """The partitions of one topic."""

    partition_responses: tuple[ProducePartitionResponse, ...]


class ProduceResponse(Struct):
    """The results, by topic and partition."""

    responses: tuple[ProduceTopicResponse, ...]
    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)  # KIP-13: quotas
    node_endpoints: tuple[NodeEndpoint, ...] = wire(since=10, tag=0, default=())  # KIP-951: saves a Metadata request


class ProducePartition(Struct):
    """The records for one partition: a message set up to v2, one record batch from v3 on."""

    index: Int32
    records: WireBytes | None


class ProduceTopic(ProducedTopicNameOrId):
    """The partitions of one topic."""

    partition_data: tuple[ProducePartition, ...]


class ProduceRequest(Request[ProduceResponse], key=0, versions=(0, 13), flexible_from=9):
    """Records for partitions that the broker leads; `acks` is 0, 1, or -1 for all replicas in sync."""

    transactional_id: String | None = wire(since=3, default=None)  # KIP-98
    acks: Int16
    timeout_ms: Int32
    topic_data: tuple[ProduceTopic, ...]

    def check_answer(self, answer: ProduceResponse, version: int, /) -> None:
        name = "topic_id" if version >= BY_ID_SINCE else "name"
        requested = partitions_in(self.topic_data, topic=name, partitions="partition_data", partition="index")
        check_echo(
            requested,
            partitions_in(answer.responses, topic=name, partitions="partition_responses", partition="index"),
        )
