"""DeleteRecords: the start of logs moves up (KIP-107). -1 is the high watermark."""

from kafka_io.wire.schema import Request, Struct
from kafka_io.wire.types import Int16, Int32, Int64, String


class DeleteRecordsPartitionResponse(Struct):
    """Where the log of one partition starts now."""

    partition_index: Int32
    low_watermark: Int64
    error_code: Int16


class DeleteRecordsTopicResponse(Struct):
    """One topic."""

    name: String
    partitions: tuple[DeleteRecordsPartitionResponse, ...]


class DeleteRecordsResponse(Struct):
    """Where the logs start now."""

    throttle_time_ms: Int32 = 0
    topics: tuple[DeleteRecordsTopicResponse, ...]


class DeleteRecordsPartition(Struct):
    """Where the log of one partition is to start."""

    partition_index: Int32
    offset: Int64


class DeleteRecordsTopic(Struct):
    """One topic."""

    name: String
    partitions: tuple[DeleteRecordsPartition, ...]


class DeleteRecordsRequest(Request[DeleteRecordsResponse], key=21, versions=(0, 2), flexible_from=2):
    """Logs to shorten, asked from the brokers that lead them."""

    topics: tuple[DeleteRecordsTopic, ...]
    timeout_ms: Int32
