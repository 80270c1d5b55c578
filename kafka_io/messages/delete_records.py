"""DeleteRecords: the start of logs moves up (KIP-107). -1 is the high watermark."""

from typing import ClassVar

from kafka_io.wire.schema import Api, Request, struct
from kafka_io.wire.types import Int16, Int32, Int64, String


@struct
class DeleteRecordsPartitionResponse:
    """Where the log of one partition starts now."""

    partition_index: Int32
    low_watermark: Int64
    error_code: Int16


@struct
class DeleteRecordsTopicResponse:
    """One topic."""

    name: String
    partitions: tuple[DeleteRecordsPartitionResponse, ...]


@struct
class DeleteRecordsResponse:
    """Where the logs start now."""

    throttle_time_ms: Int32 = 0
    topics: tuple[DeleteRecordsTopicResponse, ...]


@struct
class DeleteRecordsPartition:
    """Where the log of one partition is to start."""

    partition_index: Int32
    offset: Int64


@struct
class DeleteRecordsTopic:
    """One topic."""

    name: String
    partitions: tuple[DeleteRecordsPartition, ...]


@struct
class DeleteRecordsRequest(Request[DeleteRecordsResponse]):
    """Logs to shorten, asked from the brokers that lead them."""

    API: ClassVar = Api(key=21, name="DeleteRecords", versions=(0, 2), flexible_from=2, answer=DeleteRecordsResponse)

    topics: tuple[DeleteRecordsTopic, ...]
    timeout_ms: Int32
