"""OffsetCommit: commits offsets of a group. v0 stores them in ZooKeeper, later versions at the coordinator."""

from kafka_io.messages.echoes import check_complete_echo, partitions_in
from kafka_io.messages.shared import PartitionRow, ThrottledAnswer, TopicRows
from kafka_io.wire.schema import Request, wire
from kafka_io.wire.types import Int16, Int32, Int64, String


class OffsetCommitPartitionResponse(PartitionRow):
    """The error code if the offset of one partition was not stored."""

    error_code: Int16


class OffsetCommitTopicResponse(TopicRows[OffsetCommitPartitionResponse]):
    """The partitions of one topic."""


class OffsetCommitResponse(ThrottledAnswer, since=3):
    """The results, by topic."""

    topics: tuple[OffsetCommitTopicResponse, ...]


class OffsetCommitPartition(PartitionRow):
    """The next offset to read, and a text of the client's own.

    Only v1 has a commit time; with -1 the broker sets it.
    """

    committed_offset: Int64
    committed_leader_epoch: Int32 = wire(since=6, default=-1, ignorable=True)  # KIP-320: detects truncation
    commit_timestamp: Int64 = wire(since=1, until=1, default=-1)  # no KIP: older than the first of them
    committed_metadata: String | None


class OffsetCommitTopic(TopicRows[OffsetCommitPartition]):
    """The partitions of one topic."""


class OffsetCommitRequest(Request[OffsetCommitResponse], key=8, versions=(0, 9), flexible_from=8):
    """The offsets to store. Without group membership the generation is -1 and the member id is empty."""

    group_id: String
    generation_id_or_member_epoch: Int32 = wire(since=1, default=-1, ignorable=True)  # KIP-848: an epoch in its groups
    member_id: String = wire(since=1, default="", ignorable=True)  # no KIP: older than the first of them
    group_instance_id: String | None = wire(since=7, default=None)  # KIP-345: static members
    retention_time_ms: Int64 = wire(since=2, until=4, default=-1, ignorable=True)  # KIP-211 removed it
    topics: tuple[OffsetCommitTopic, ...]

    def check_answer(self, answer: OffsetCommitResponse, _version: int, /) -> None:
        check_complete_echo(partitions_in(self.topics), partitions_in(answer.topics))
