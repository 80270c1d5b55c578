"""Fetch: batches as they lie in the log, held until there are enough of them or the time is up.

What is there is first measured, then read. Session 0 is answered: each request is a full one, as KIP-227 allows.
Clients before v4 do not know record batches and get messages, whose last one may be cut (v0 to v2, seed 002).
"""

import time
from dataclasses import dataclass

from kafka_io.broker.modern.apis.epochs import check_epoch
from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.log.log import Log
from kafka_io.broker.modern.log.segment import Region
from kafka_io.broker.modern.node import Caller, Node
from kafka_io.broker.modern.old_answers import as_messages
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

_BATCHES_SINCE = 4
_TIMES_SINCE = 2  # messages of format 1
_WHOLE_SINCE = 3  # KIP-74
_UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One partition of a request, and what there is for it: bytes of its log, nothing, or a refusal."""

    asked: FetchPartition
    log: Log | None = None
    region: Region | None = None
    stable: int = _UNKNOWN
    code: int = Code.NONE

    @property
    def size(self) -> int:
        return self.region.count if self.region else 0


def fetch(request: FetchRequest, node: Node, caller: Caller) -> FetchResponse:
    """What there is of each partition, in the order it was asked for."""
    if request.session_id:
        return FetchResponse(error_code=Code.FETCH_SESSION_ID_NOT_FOUND, responses=())
    deadline_s = time.monotonic() + max(0, min(request.max_wait_ms, node.config.max_wait_ms)) / 1000
    while True:
        seen = node.arrivals.count
        measured = _measured(request, node, caller)
        parts = [part for topic in measured for part in topic]
        enough = sum(part.size for part in parts) >= request.min_bytes or any(part.code for part in parts)
        if enough or not parts or not node.arrivals.wait_past(seen, deadline_s):
            break
    committed = request.isolation_level == READ_COMMITTED
    return FetchResponse(
        responses=tuple(
            FetchTopicResponse(
                topic=asked.topic,
                topic_id=asked.topic_id,
                partitions=tuple(_response(part, caller.version, committed=committed) for part in found),
            )
            for asked, found in zip(request.topics, measured, strict=True)
        )
    )


def _measured(request: FetchRequest, node: Node, caller: Caller) -> list[list[_Part]]:
    """By topic, what each partition is given of `max_bytes`; the first one with records gets at least one batch."""
    left = max(0, min(request.max_bytes, node.config.max_fetch_bytes))
    whole = caller.version >= _WHOLE_SINCE
    committed = request.isolation_level == READ_COMMITTED
    topics = []
    for asked in request.topics:
        parts = []
        for one in asked.partitions:
            part = _part(asked, one, node, caller, most=left, whole=whole, committed=committed)
            left = max(0, left - part.size)
            whole = whole and part.size == 0
            parts.append(part)
        topics.append(parts)
    return topics


def _part(
    asked: FetchTopic, one: FetchPartition, node: Node, caller: Caller, *, most: int, whole: bool, committed: bool
) -> _Part:
    log, stable = None, _UNKNOWN
    # What is to be converted must be whole.
    whole = whole or caller.version < _WHOLE_SINCE
    try:
        topic = node.topics.find(asked.topic) if caller.version < BY_ID_SINCE else node.topics.find_id(asked.topic_id)
        log = topic.log(one.partition)
        check_epoch(one.current_leader_epoch)
        stable = log.stable
        most = max(0, min(most, one.partition_max_bytes))
        region = log.region(one.fetch_offset, most, whole=whole, stop=stable if committed else None)
    except BrokerError as error:
        return _Part(asked=one, log=log, stable=stable, code=error.code)
    return _Part(asked=one, log=log, stable=stable, region=region)


def _response(part: _Part, version: int, *, committed: bool) -> FetchPartitionResponse:
    code, records = part.code, b""
    # Asked for after the records were measured: they never reach beyond it.
    end = part.log.end if part.log else _UNKNOWN
    try:
        records = _records(part, version)
    except BrokerError as error:
        code = error.code
    return FetchPartitionResponse(
        partition_index=part.asked.partition,
        error_code=code,
        high_watermark=end,
        last_stable_offset=part.stable,
        log_start_offset=part.log.start if part.log else _UNKNOWN,
        aborted_transactions=_aborted(part) if committed else None,
        records=records,
    )


def _aborted(part: _Part) -> tuple[AbortedTransaction, ...]:
    """What a reader of committed records must leave out of these."""
    if part.log is None or part.region is None:
        return ()
    ranges = part.log.aborted(part.asked.fetch_offset, part.stable)
    return tuple(AbortedTransaction(producer_id=one.producer_id, first_offset=one.first) for one in ranges)


def _records(part: _Part, version: int) -> bytes:
    if part.region is None:
        return b""
    data = part.region.read()
    if version >= _BATCHES_SINCE:
        return data
    messages = as_messages(data, magic=1 if version >= _TIMES_SINCE else 0, at=part.asked.fetch_offset)
    return messages if version >= _WHOLE_SINCE else messages[: max(0, part.asked.partition_max_bytes)]
