"""Fetch: batches as they are stored in the log. The answer waits until there are enough bytes or the time has passed.

First the handler determines which bytes it can send (file regions), and waits if they are too few. Then it reads them.
It has no fetch sessions: every request is a full one, with session id 0, as KIP-227 allows.
Clients before v4 do not know record batches and receive messages. In v0 to v2 the last one may be cut
[kafka-0.8: Fetch].
"""

import time
from dataclasses import dataclass

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError
from kafka_io.messages.fetch import (
    BY_ID_SINCE,
    AbortedTransaction,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    FetchTopicResponse,
)
from kafka_io.messages.list_offsets import READ_COMMITTED
from kafka_io.testing.modern.apis.epochs import check_epoch
from kafka_io.testing.modern.down_conversion import convert_to_messages
from kafka_io.testing.modern.log.log import PartitionLog
from kafka_io.testing.modern.log.segment import FileRegion
from kafka_io.testing.modern.node import BrokerNode, Caller

# Versions of the Fetch request.
_TIMESTAMPS_SINCE = 2  # messages of format 1
_WHOLE_BATCH_SINCE = 3  # KIP-74
_BATCHES_SINCE = 4
_UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _PartitionPlan:
    """What is sent for one partition of a request: a region of its log, nothing, or an error code."""

    request: FetchPartition
    log: PartitionLog | None = None
    region: FileRegion | None = None
    last_stable_offset: int = _UNKNOWN
    code: int = ErrorCode.NONE

    @property
    def size(self) -> int:
        return self.region.count if self.region else 0


def fetch(request: FetchRequest, node: BrokerNode, caller: Caller) -> FetchResponse:
    """The records of each partition, in the order of the request."""
    if request.session_id:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=())
    committed = request.isolation_level == READ_COMMITTED
    plans_by_topic = _wait_for_records(request, node, caller)
    return FetchResponse(
        responses=tuple(
            FetchTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=tuple(_response(plan, caller.version, committed=committed) for plan in plans),
            )
            for topic, plans in zip(request.topics, plans_by_topic, strict=True)
        )
    )


def _wait_for_records(request: FetchRequest, node: BrokerNode, caller: Caller) -> list[list[_PartitionPlan]]:
    """The plans by topic, when they have `min_bytes`, when a partition has an error, or when the time has passed.

    The change count is read before the logs. A record that is written in between makes the wait end at once, so no
    record is missed (see FetchPurgatory).
    """
    deadline_s = time.monotonic() + max(0, min(request.max_wait_ms, node.config.max_wait_ms)) / 1000
    while True:
        change_count = node.purgatory.change_count
        plans_by_topic = _plan(request, node, caller)
        plans = [plan for topic_plans in plans_by_topic for plan in topic_plans]
        is_enough = sum(plan.size for plan in plans) >= request.min_bytes or any(plan.code for plan in plans)
        if is_enough or not plans or not node.purgatory.wait_after(change_count, deadline_s):
            return plans_by_topic


def _plan(request: FetchRequest, node: BrokerNode, caller: Caller) -> list[list[_PartitionPlan]]:
    """The plans by topic: they share `max_bytes`, and the first one with records gets at least one whole batch."""
    left_bytes = max(0, min(request.max_bytes, node.config.max_fetch_bytes))
    whole = caller.version >= _WHOLE_BATCH_SINCE
    committed = request.isolation_level == READ_COMMITTED
    plans_by_topic = []
    for topic in request.topics:
        plans = []
        for partition in topic.partitions:
            plan = _plan_partition(
                topic, partition, node, caller, max_bytes=left_bytes, whole=whole, committed=committed
            )
            left_bytes = max(0, left_bytes - plan.size)
            whole = whole and plan.size == 0
            plans.append(plan)
        plans_by_topic.append(plans)
    return plans_by_topic


def _plan_partition(
    topic_request: FetchTopic,
    request: FetchPartition,
    node: BrokerNode,
    caller: Caller,
    *,
    max_bytes: int,
    whole: bool,
    committed: bool,
) -> _PartitionPlan:
    log, last_stable_offset = None, _UNKNOWN
    # Before v3 the answer is converted to messages, and only a whole batch can be converted.
    whole = whole or caller.version < _WHOLE_BATCH_SINCE
    try:
        if caller.version < BY_ID_SINCE:
            topic = node.topics.find(topic_request.topic)
        else:
            topic = node.topics.find_id(topic_request.topic_id)
        log = topic.log(request.partition)
        check_epoch(request.current_leader_epoch)
        last_stable_offset = log.last_stable_offset
        max_bytes = max(0, min(max_bytes, request.partition_max_bytes))
        stop = last_stable_offset if committed else None
        region = log.region(request.fetch_offset, max_bytes, whole=whole, stop=stop)
    except BrokerError as error:
        return _PartitionPlan(request=request, log=log, last_stable_offset=last_stable_offset, code=error.code)
    return _PartitionPlan(request=request, log=log, last_stable_offset=last_stable_offset, region=region)


def _response(plan: _PartitionPlan, version: int, *, committed: bool) -> FetchPartitionResponse:
    code, records = plan.code, b""
    # The end of the log is read after the plan was made, so the records never extend beyond it.
    end = plan.log.end if plan.log else _UNKNOWN
    try:
        records = _read_records(plan, version)
    except BrokerError as error:
        code = error.code
    return FetchPartitionResponse(
        partition_index=plan.request.partition,
        error_code=code,
        high_watermark=end,
        last_stable_offset=plan.last_stable_offset,
        log_start_offset=plan.log.start if plan.log else _UNKNOWN,
        aborted_transactions=_aborted_transactions(plan) if committed else None,
        records=records,
    )


def _aborted_transactions(plan: _PartitionPlan) -> tuple[AbortedTransaction, ...]:
    """The aborted transactions whose records a reader of committed records must skip."""
    if plan.log is None or plan.region is None:
        return ()
    ranges = plan.log.aborted_transactions(plan.request.fetch_offset, plan.last_stable_offset)
    return tuple(
        AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset) for aborted in ranges
    )


def _read_records(plan: _PartitionPlan, version: int) -> bytes:
    if plan.region is None:
        return b""
    data = plan.region.read()
    if version >= _BATCHES_SINCE:
        return data
    magic = 1 if version >= _TIMESTAMPS_SINCE else 0
    messages = convert_to_messages(data, magic=magic, start=plan.request.fetch_offset)
    return messages if version >= _WHOLE_BATCH_SINCE else messages[: max(0, plan.request.partition_max_bytes)]
