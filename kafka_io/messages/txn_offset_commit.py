"""TxnOffsetCommit: adds offsets of a group to a transaction; they count once it is committed (KIP-98)."""

from kafka_io.messages.echoes import check_complete_echo, partitions_in
from kafka_io.messages.offset_commit import OffsetCommitTopicResponse
from kafka_io.messages.shared import PartitionRow, ThrottledAnswer, TopicRows
from kafka_io.wire.schema import Request, wire
from kafka_io.wire.types import Int16, Int32, Int64, String


class TxnOffsetCommitResponse(ThrottledAnswer):
    """The results, by topic."""

    topics: tuple[OffsetCommitTopicResponse, ...]


class TxnOffsetCommitPartition(PartitionRow):
    """The next offset to read, and a text of the client's own."""

    committed_offset: Int64
    committed_leader_epoch: Int32 = wire(since=2, default=-1, ignorable=True)  # KIP-320: detects truncation
    committed_metadata: String | None


class TxnOffsetCommitTopic(TopicRows[TxnOffsetCommitPartition]):
    """The partitions of one topic."""


class TxnOffsetCommitRequest(Request[TxnOffsetCommitResponse], key=28, versions=(0, 5), flexible_from=3):
    """The offsets that the group commits together with the transaction."""

    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation_id: Int32 = wire(since=3, default=-1)  # KIP-447: a stale member is fenced
    member_id: String = wire(since=3, default="")  # KIP-447
    group_instance_id: String | None = wire(since=3, default=None)  # KIP-447
    topics: tuple[TxnOffsetCommitTopic, ...]

    def check_answer(self, answer: TxnOffsetCommitResponse, _version: int, /) -> None:
        check_complete_echo(partitions_in(self.topics), partitions_in(answer.topics))
