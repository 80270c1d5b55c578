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
from kafka_io.testing.modern.apis.results import attempt
from kafka_io.testing.modern.down_conversion import convert_to_messages
from kafka_io.testing.modern.log.log import PartitionLog
from kafka_io.testing.modern.node import BrokerNode, Caller
from kafka_io.testing.segment_file import FileRegion

# Versions of the Fetch request.
_TIMESTAMPS_SINCE = 2  # messages of format 1
_WHOLE_BATCH_SINCE = 3  # KIP-74
_BATCHES_SINCE = 4
_UNKNOWN = -1


@dataclass(slots=True)
class _PartitionPlan:
    """The plan for one partition of a request: a region of its log, nothing, or an error code."""

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
    fetch_plan = _FetchPlan(request, node, caller.version)
    topics = zip(request.topics, fetch_plan.wait_for_records(), strict=True)
    return FetchResponse(
        responses=tuple(
            FetchTopicResponse(
                topic=topic.topic, topic_id=topic.topic_id, partitions=tuple(map(fetch_plan.response, plans))
            )
            for topic, plans in topics
        )
    )


class _FetchPlan:
    """Plans and reads what one request gets."""

    def __init__(self, request: FetchRequest, node: BrokerNode, version: int) -> None:
        self._request = request
        self._node = node
        self._version = version
        self._is_committed = request.isolation_level == READ_COMMITTED

    def wait_for_records(self) -> list[list[_PartitionPlan]]:
        """The plans by topic, when they have `min_bytes`, when a partition has an error, or when the time has passed.

        The change count is read before the logs. A record that is written in between makes the wait end at once, so no
        record is missed (see FetchPurgatory).
        """
        purgatory = self._node.purgatory
        wait_ms = max(0, min(self._request.max_wait_ms, self._node.config.max_wait_ms))
        deadline_s = time.monotonic() + wait_ms / 1000
        while True:
            change_count = purgatory.change_count
            plans_by_topic = self._plan()
            plans = [plan for topic_plans in plans_by_topic for plan in topic_plans]
            is_enough = sum(plan.size for plan in plans) >= self._request.min_bytes or any(plan.code for plan in plans)
            if is_enough or not plans or not purgatory.wait_after(change_count, deadline_s):
                return plans_by_topic

    def _plan(self) -> list[list[_PartitionPlan]]:
        """The plans by topic: they share `max_bytes`, and the first one with records gets at least one whole batch."""
        left_bytes = max(0, min(self._request.max_bytes, self._node.config.max_fetch_bytes))
        whole = self._version >= _WHOLE_BATCH_SINCE
        plans_by_topic = []
        for topic in self._request.topics:
            plans = []
            for partition in topic.partitions:
                plan = self._plan_partition(topic, partition, left_bytes, whole=whole)
                left_bytes = max(0, left_bytes - plan.size)
                whole = whole and plan.size == 0
                plans.append(plan)
            plans_by_topic.append(plans)
        return plans_by_topic

    def _plan_partition(
        self, topic: FetchTopic, request: FetchPartition, max_bytes: int, *, whole: bool
    ) -> _PartitionPlan:
        plan = _PartitionPlan(request)
        # Before v3 the answer is converted to messages, and only a whole batch can be converted.
        whole = whole or self._version < _WHOLE_BATCH_SINCE
        max_bytes = max(0, min(max_bytes, request.partition_max_bytes))
        try:
            name = topic.topic if self._version < BY_ID_SINCE else None
            plan.log = self._node.topics.find(name, topic.topic_id).log(request.partition)
            check_epoch(request.current_leader_epoch)
            # It is read once, because the region, the answer and the aborted transactions must agree on it.
            plan.last_stable_offset = plan.log.last_stable_offset
            stop = plan.last_stable_offset if self._is_committed else None
            plan.region = plan.log.region(request.fetch_offset, max_bytes, whole=whole, stop=stop)
        except BrokerError as error:
            plan.code = error.code
        return plan

    def response(self, plan: _PartitionPlan) -> FetchPartitionResponse:
        """The answer for one partition."""
        # The end of the log is read after the plan was made, so the records never extend beyond it.
        start, end = (plan.log.start, plan.log.end) if plan.log else (_UNKNOWN, _UNKNOWN)
        records = attempt(lambda: self._read_records(plan), b"")
        return FetchPartitionResponse(
            partition_index=plan.request.partition,
            error_code=records.code or plan.code,
            high_watermark=end,
            last_stable_offset=plan.last_stable_offset,
            log_start_offset=start,
            aborted_transactions=_aborted_transactions(plan) if self._is_committed else None,
            records=records.value,
        )

    def _read_records(self, plan: _PartitionPlan) -> bytes:
        if plan.region is None:
            return b""
        data = plan.region.read()
        if self._version >= _BATCHES_SINCE:
            return data
        magic = 1 if self._version >= _TIMESTAMPS_SINCE else 0
        messages = convert_to_messages(data, magic=magic, start=plan.request.fetch_offset)
        max_bytes = max(0, plan.request.partition_max_bytes)
        return messages if self._version >= _WHOLE_BATCH_SINCE else messages[:max_bytes]


def _aborted_transactions(plan: _PartitionPlan) -> tuple[AbortedTransaction, ...]:
    """The aborted transactions whose records a reader of committed records must skip."""
    if plan.log is None or plan.region is None:
        return ()
    return plan.log.transactions.aborted(plan.request.fetch_offset, plan.last_stable_offset)
