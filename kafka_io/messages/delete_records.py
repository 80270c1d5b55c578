"""DeleteRecords: asks a leader to delete the records before an offset (KIP-107). Offset -1 is the high watermark."""

from kafka_io.wire.schema import Request, Struct
from kafka_io.wire.types import Int16, Int32, Int64, String


class DeleteRecordsPartitionResponse(Struct):
    """The new start of the log of one partition."""

    partition_index: Int32
    low_watermark: Int64
    error_code: Int16


class DeleteRecordsTopicResponse(Struct):
    """The partitions of one topic."""

    name: String
    partitions: tuple[DeleteRecordsPartitionResponse, ...]


class DeleteRecordsResponse(Struct):
    """The new starts of the logs, by topic."""

    throttle_time_ms: Int32 = 0
    topics: tuple[DeleteRecordsTopicResponse, ...]


class DeleteRecordsPartition(Struct):
    """A partition, and the offset before which its records are deleted."""

    partition_index: Int32
    offset: Int64


class DeleteRecordsTopic(Struct):
    """The partitions of one topic."""

    name: String
    partitions: tuple[DeleteRecordsPartition, ...]


class DeleteRecordsRequest(Request[DeleteRecordsResponse], key=21, versions=(0, 2), flexible_from=2):
    """The partitions whose records are deleted. The broker must be the leader of all of them."""

    topics: tuple[DeleteRecordsTopic, ...]
    timeout_ms: Int32
