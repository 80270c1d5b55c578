"""DeleteRecords: asks a leader to delete the records before an offset (KIP-107). Offset -1 is the high watermark."""

from kafka_io.messages.shared import PartitionRow, ThrottledAnswer, TopicRows
from kafka_io.wire.schema import Request
from kafka_io.wire.types import Int16, Int32, Int64


class DeleteRecordsPartitionResponse(PartitionRow):
    """The new start of the log of one partition."""

    low_watermark: Int64
    error_code: Int16


class DeleteRecordsTopicResponse(TopicRows[DeleteRecordsPartitionResponse]):
    """The partitions of one topic."""


class DeleteRecordsResponse(ThrottledAnswer):
    """The new starts of the logs, by topic."""

    topics: tuple[DeleteRecordsTopicResponse, ...]


class DeleteRecordsPartition(PartitionRow):
    """A partition, and the offset before which its records are deleted."""

    offset: Int64


class DeleteRecordsTopic(TopicRows[DeleteRecordsPartition]):
    """The partitions of one topic."""


class DeleteRecordsRequest(Request[DeleteRecordsResponse], key=21, versions=(0, 2), flexible_from=2):
    """The partitions whose records are deleted. The broker must be the leader of all of them."""

    topics: tuple[DeleteRecordsTopic, ...]
    timeout_ms: Int32
