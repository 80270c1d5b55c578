"""ListOffsets: the start and the end of a log, and the first offset at a time. v0 answers with starts of segments.

See [kafka-0.8: Offsets and times].
"""

from dataclasses import replace

from kafka_io.error_codes import ErrorCode
from kafka_io.messages.list_offsets import (
    EARLIEST_TIME,
    LATEST_TIME,
    MAX_TIMESTAMP,
    READ_COMMITTED,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_io.messages.shared import answered
from kafka_io.testing.modern.apis.epochs import check_epoch
from kafka_io.testing.modern.apis.results import attempt
from kafka_io.testing.modern.log.header import LEADER_EPOCH
from kafka_io.testing.modern.log.log import PartitionLog
from kafka_io.testing.modern.log.times import TimestampOffset, first_record_since, record_with_max_timestamp
from kafka_io.testing.modern.node import BrokerNode, Caller

_EARLIEST_LOCAL_TIME = -4  # KIP-405; this broker has no remote storage, so it is the start of the log
_EPOCHS_SINCE = 4
_NO_TIME = _NO_EPOCH = -1
_NO_RECORD = TimestampOffset(-1, _NO_TIME)


def list_offsets(request: ListOffsetsRequest, node: BrokerNode, caller: Caller) -> ListOffsetsResponse:
    """One offset for each partition; in v0 several."""
    committed = request.isolation_level == READ_COMMITTED

    def list_partition(topic: str, partition: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        refused = ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=ErrorCode.NONE)
        result = attempt(lambda: _list_partition(topic, partition, node, caller, committed=committed), refused)
        return replace(result.value, error_code=result.code)

    return ListOffsetsResponse(topics=answered(ListOffsetsTopicResponse, request.topics, list_partition))


def _list_partition(
    topic: str, request: ListOffsetsPartition, node: BrokerNode, caller: Caller, *, committed: bool
) -> ListOffsetsPartitionResponse:
    number = request.partition_index
    log = node.topics.find(topic).log(number)
    check_epoch(request.current_leader_epoch)
    if caller.version == 0:
        starts = log.offsets_before(request.timestamp, max(0, request.max_num_offsets))
        return ListOffsetsPartitionResponse(partition_index=number, error_code=ErrorCode.NONE, old_style_offsets=starts)
    record = _find_offset(log, request.timestamp, log.last_stable_offset if committed else log.end)
    return ListOffsetsPartitionResponse(
        partition_index=number,
        error_code=ErrorCode.NONE,
        timestamp=record.time_ms,
        offset=record.offset,
        leader_epoch=LEADER_EPOCH if caller.version >= _EPOCHS_SINCE else _NO_EPOCH,
    )


def _find_offset(log: PartitionLog, time_ms: int, end: int) -> TimestampOffset:
    """The offset for a time or for one of the special times; only records before `end` count."""
    bounds = {LATEST_TIME: end, EARLIEST_TIME: log.start, _EARLIEST_LOCAL_TIME: log.start}
    if time_ms in bounds:
        return TimestampOffset(bounds[time_ms], _NO_TIME)
    record = None
    if time_ms == MAX_TIMESTAMP:
        record = record_with_max_timestamp(log)
    elif time_ms >= 0:
        record = first_record_since(log, time_ms)
    return record if record and record.offset < end else _NO_RECORD
