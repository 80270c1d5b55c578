"""Fetch: asks leaders for the records of partitions, from an offset on. From v13 on topics have ids (KIP-516)."""

from kafka_io.messages.echoes import check_echo, partitions_in
from kafka_io.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from kafka_io.messages.shared import PartitionRow
from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import MANY_ITEMS, NULL_UUID, Int8, Int16, Int32, Int64, String, Uuid, WireBytes

INT32_MAX = 2**31 - 1
BOUNDED_SINCE = 3
"""Requests limit the size of the whole answer from this version on. The broker fills it in the order of the request."""
BY_ID_SINCE = 13


class TopicNameOrId(Struct):
    """The first fields of a topic: its name up to v12, and its id from v13 on."""

    topic: String = wire(until=12, default="", ignorable=True)
    topic_id: Uuid = wire(since=BY_ID_SINCE, default=NULL_UUID, ignorable=True)  # KIP-516: distinguishes incarnations


class EpochEndOffset(Struct):
    """The end of an epoch from which on the log diverges from what the reader has read (KIP-595)."""

    epoch: Int32 = -1
    end_offset: Int64 = -1


class SnapshotId(Struct):
    """A snapshot of the log; only replicas use it."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Struct):
    """An aborted transaction. A reader of committed records drops the producer's records from `first_offset` on."""

    producer_id: Int64
    first_offset: Int64


class FetchPartitionResponse(PartitionRow):
    """The records of one partition.

    The last batch may be incomplete, and the first one may begin before the requested offset.
    """

    error_code: Int16
    high_watermark: Int64
    last_stable_offset: Int64 = wire(since=4, default=-1, ignorable=True)  # KIP-98: the end for READ_COMMITTED
    log_start_offset: Int64 = wire(since=5, default=-1, ignorable=True)  # KIP-107: DeleteRecords moves it
    diverging_epoch: EpochEndOffset = wire(since=12, tag=0, default=EpochEndOffset())  # KIP-595: where the logs diverge
    current_leader: LeaderIdAndEpoch = wire(since=12, tag=1, default=LeaderIdAndEpoch())  # KIP-595
    snapshot_id: SnapshotId = wire(since=12, tag=2, default=SnapshotId())  # KIP-630: for KRaft
    aborted_transactions: tuple[AbortedTransaction, ...] | None = wire(  # KIP-98
        since=4, null_since=4, max_items=MANY_ITEMS, default=None, ignorable=True
    )
    preferred_read_replica: Int32 = wire(since=11, default=-1)  # KIP-392: a follower near the reader
    records: WireBytes | None


class FetchTopicResponse(TopicNameOrId):
    """The partitions of one topic."""

    partitions: tuple[FetchPartitionResponse, ...]


class FetchResponse(Struct):
    """The records, by topic and partition."""

    throttle_time_ms: Int32 = wire(since=1, default=0, ignorable=True)  # KIP-13: quotas
    error_code: Int16 = wire(since=7, default=0, ignorable=True)  # KIP-227: fetch sessions
    session_id: Int32 = wire(since=7, default=0)  # KIP-227: fetch sessions
    responses: tuple[FetchTopicResponse, ...]
    node_endpoints: tuple[NodeEndpoint, ...] = wire(since=16, tag=0, default=())  # KIP-951: saves a Metadata request


class ReplicaState(Struct):
    """The replica that sends the request; a client leaves the defaults."""

    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchPartition(Struct):
    """The offset to read one partition from, and the maximum number of bytes."""

    partition: Int32
    current_leader_epoch: Int32 = wire(since=9, default=-1, ignorable=True)  # KIP-320: fences stale leaders
    fetch_offset: Int64
    last_fetched_epoch: Int32 = wire(since=12, default=-1)  # KIP-595: detects truncation
    log_start_offset: Int64 = wire(since=5, default=-1, ignorable=True)  # KIP-107: DeleteRecords moves it
    partition_max_bytes: Int32
    replica_directory_id: Uuid = wire(since=17, tag=0, default=NULL_UUID, ignorable=True)  # KIP-853: for KRaft
    high_watermark: Int64 = wire(since=18, tag=1, default=2**63 - 1, ignorable=True)  # KIP-1166: for followers


class FetchTopic(TopicNameOrId):
    """The partitions of one topic."""

    partitions: tuple[FetchPartition, ...]


class ForgottenTopic(TopicNameOrId):
    """Partitions that leave a fetch session (KIP-227)."""

    partitions: tuple[Int32, ...]


class FetchRequest(Request[FetchResponse], key=1, versions=(0, 18), flexible_from=12, max_answer_bytes=None):
    """The partitions to read. The broker must be the leader of all of them, or a replica."""

    cluster_id: String | None = wire(since=12, null_since=12, tag=0, default=None, ignorable=True)  # KIP-595: for KRaft
    replica_id: Int32 = wire(until=14, default=-1)
    replica_state: ReplicaState = wire(since=15, tag=1, default=ReplicaState())  # KIP-903: fences stale replicas
    max_wait_ms: Int32 = 500
    min_bytes: Int32 = 1
    max_bytes: Int32 = wire(since=BOUNDED_SINCE, default=INT32_MAX, ignorable=True)  # KIP-74: bounds the whole response
    isolation_level: Int8 = wire(since=4, default=0, ignorable=True)  # KIP-98: transactions
    session_id: Int32 = wire(since=7, default=0, ignorable=True)  # KIP-227: fetch sessions
    session_epoch: Int32 = wire(since=7, default=-1, ignorable=True)  # KIP-227
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: tuple[ForgottenTopic, ...] = wire(since=7, default=())  # KIP-227
    rack_id: String = wire(since=11, default="", ignorable=True)  # KIP-392: the reader's rack

    def check_answer(self, answer: FetchResponse, version: int, /) -> None:
        """A broker leaves partitions out when the client's quota is used up (KIP-219)."""
        name = "topic_id" if version >= BY_ID_SINCE else "topic"
        requested = partitions_in(self.topics, topic=name, partition="partition")
        check_echo(requested, partitions_in(answer.responses, topic=name))
