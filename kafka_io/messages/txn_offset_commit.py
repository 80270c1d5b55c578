"""TxnOffsetCommit: offsets of a group that hold once the transaction is committed (KIP-98)."""

from typing import ClassVar

from kafka_io.wire.schema import Api, Request, struct, wire
from kafka_io.wire.types import Int16, Int32, Int64, String


@struct
class TxnOffsetCommitPartitionResponse:
    """Whether the offset of one partition was taken."""

    partition_index: Int32
    error_code: Int16


@struct
class TxnOffsetCommitTopicResponse:
    """One topic."""

    name: String
    partitions: tuple[TxnOffsetCommitPartitionResponse, ...]


@struct
class TxnOffsetCommitResponse:
    """What was taken, by topic."""

    throttle_time_ms: Int32 = 0
    topics: tuple[TxnOffsetCommitTopicResponse, ...]


@struct
class TxnOffsetCommitPartition:
    """The next offset to read, with a text of the committer's own."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = wire(since=2, default=-1, ignorable=True)  # KIP-320: detects truncation
    committed_metadata: String | None


@struct
class TxnOffsetCommitTopic:
    """One topic."""

    name: String
    partitions: tuple[TxnOffsetCommitPartition, ...]


@struct
class TxnOffsetCommitRequest(Request[TxnOffsetCommitResponse]):
    """Offsets to keep when the transaction is committed."""

    API: ClassVar = Api(
        key=28, name="TxnOffsetCommit", versions=(0, 5), flexible_from=3, answer=TxnOffsetCommitResponse
    )

    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation_id: Int32 = wire(since=3, default=-1)  # KIP-447: a stale member is fenced
    member_id: String = wire(since=3, default="")  # KIP-447
    group_instance_id: String | None = wire(since=3, default=None)  # KIP-447
    topics: tuple[TxnOffsetCommitTopic, ...]
