"""ListOffsets: both ends of a log, and the first offset at a time. v0 answers with starts of segments (seed 002)."""

from collections.abc import Iterator

from kafka_io.broker.modern.apis.epochs import check_epoch
from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.log.header import LEADER_EPOCH
from kafka_io.broker.modern.log.log import Log
from kafka_io.broker.modern.log.times import Found, first_at, newest
from kafka_io.broker.modern.node import Caller, Node
from kafka_io.errors import BrokerError
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

_EARLIEST_LOCAL_TIME = -4  # KIP-405; nothing of this log is elsewhere
_EPOCHS_SINCE = 4
_NO_TIME = _NO_EPOCH = -1
_NONE = Found(-1, _NO_TIME)


def list_offsets(request: ListOffsetsRequest, node: Node, caller: Caller) -> ListOffsetsResponse:
    """One offset for each partition; in v0 many."""
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    _partition(topic.name, one, node, caller, committed=request.isolation_level == READ_COMMITTED)
                    for one in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _partition(
    topic: str, asked: ListOffsetsPartition, node: Node, caller: Caller, *, committed: bool
) -> ListOffsetsPartitionResponse:
    number = asked.partition_index
    try:
        log = node.topics.find(topic).log(number)
        check_epoch(asked.current_leader_epoch)
    except BrokerError as error:
        return ListOffsetsPartitionResponse(partition_index=number, error_code=error.code)
    if caller.version == 0:
        old = tuple(_old_style(log, asked.timestamp, node.clock()))[: max(0, asked.max_num_offsets)]
        return ListOffsetsPartitionResponse(partition_index=number, error_code=Code.NONE, old_style_offsets=old)
    found = _offset(log, asked.timestamp, log.stable if committed else log.end)
    return ListOffsetsPartitionResponse(
        partition_index=number,
        error_code=Code.NONE,
        timestamp=found.time_ms,
        offset=found.offset,
        leader_epoch=LEADER_EPOCH if caller.version >= _EPOCHS_SINCE else _NO_EPOCH,
    )


def _offset(log: Log, time_ms: int, end: int) -> Found:
    if time_ms == LATEST_TIME:
        return Found(end, _NO_TIME)
    if time_ms in {EARLIEST_TIME, _EARLIEST_LOCAL_TIME}:
        return Found(log.start, _NO_TIME)
    found = newest(log) if time_ms == MAX_TIMESTAMP else first_at(log, time_ms) if time_ms >= 0 else None
    return found if found and found.offset < end else _NONE


def _old_style(log: Log, time_ms: int, now_ms: int) -> Iterator[int]:
    """The end and the starts of segments, descending, of those last written to at `time_ms` or before."""
    if time_ms == EARLIEST_TIME:
        yield log.start
        return
    segments = log.segments
    if segments[-1].size and (time_ms == LATEST_TIME or time_ms >= now_ms):
        yield log.end
    for segment in reversed(segments):
        if time_ms == LATEST_TIME or segment.modified_ms <= time_ms:
            yield max(segment.base, log.start)
