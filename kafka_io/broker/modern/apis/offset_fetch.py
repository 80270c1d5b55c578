"""OffsetFetch: what groups have committed; -1 where that is nothing."""

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.groups.offsets import Committed, Place
from kafka_io.broker.modern.node import Caller, Node
from kafka_io.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchGroupPartitionResponse,
    OffsetFetchGroupResponse,
    OffsetFetchGroupTopic,
    OffsetFetchGroupTopicResponse,
    OffsetFetchPartitionResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    OffsetFetchTopicResponse,
)

_MANY_SINCE = 8
_NONE = Committed(-1)
_Rows = list[tuple[int, Committed, Code]]
_PartitionT = TypeVar("_PartitionT", OffsetFetchPartitionResponse, OffsetFetchGroupPartitionResponse)
_Topics = Iterable[OffsetFetchTopic | OffsetFetchGroupTopic] | None


def offset_fetch(request: OffsetFetchRequest, node: Node, caller: Caller) -> OffsetFetchResponse:
    """The offsets that were asked for, or all; of one group up to v7, of many from v8 on."""
    stable = request.require_stable
    if caller.version >= _MANY_SINCE:
        return OffsetFetchResponse(groups=tuple(_group(one, node, stable=stable) for one in request.groups))
    wanted = _wanted(request.group_id, request.topics, node, stable=stable)
    return OffsetFetchResponse(
        topics=tuple(
            OffsetFetchTopicResponse(name=name, partitions=_answered(OffsetFetchPartitionResponse, rows))
            for name, rows in wanted
        )
    )


def _group(asked: OffsetFetchGroup, node: Node, *, stable: bool) -> OffsetFetchGroupResponse:
    wanted = _wanted(asked.group_id, asked.topics, node, stable=stable)
    topics = tuple(
        OffsetFetchGroupTopicResponse(name=name, partitions=_answered(OffsetFetchGroupPartitionResponse, rows))
        for name, rows in wanted
    )
    return OffsetFetchGroupResponse(group_id=asked.group_id, topics=topics)


def _answered(kind: type[_PartitionT], rows: _Rows) -> tuple[_PartitionT, ...]:
    """The rows as the one or the other version of the answer names them: their fields are the same."""
    return tuple(
        kind(
            partition_index=number,
            committed_offset=one.offset,
            committed_leader_epoch=one.leader_epoch,
            metadata=one.metadata,
            error_code=code,
        )
        for number, one, code in rows
    )


def _wanted(group: str, topics: _Topics, node: Node, *, stable: bool) -> Iterable[tuple[str, _Rows]]:
    """By topic, the partitions that were asked for with what is committed; no topics asks for all there is.

    Who wants stable offsets gets none that a transaction is about to change (KIP-447).
    """
    kept = node.coordinator.offsets.of(group)
    changing = node.transactions.pending(group) if stable else frozenset[Place]()
    asked = (
        sorted(kept) if topics is None else [(one.name, number) for one in topics for number in one.partition_indexes]
    )
    rows: defaultdict[str, list[tuple[int, Committed, Code]]] = defaultdict(list)
    for place in asked:
        is_changing = place in changing
        found = _NONE if is_changing else kept.get(place, _NONE)
        rows[place[0]].append((place[1], found, Code.UNSTABLE_OFFSET_COMMIT if is_changing else Code.NONE))
    return rows.items()
