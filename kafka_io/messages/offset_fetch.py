"""OffsetFetch: asks for the committed offsets of a group, from v8 on of several groups (KIP-709)."""

from collections.abc import Iterable

from kafka_io.messages.echoes import check_complete_echo, check_echo, partitions_in
from kafka_io.messages.shared import PartitionRow, ThrottledAnswer, TopicRows
from kafka_io.wire.schema import MIB, Request, Struct, wire
from kafka_io.wire.types import MANY_ITEMS, Bool, Int16, Int32, Int64, String

GROUPS_SINCE = 8  # KIP-709: many groups in one request


class OffsetFetchPartitionResponse(PartitionRow):
    """The committed offset of one partition; -1 if there is none."""

    committed_offset: Int64
    committed_leader_epoch: Int32 = wire(since=5, default=-1, ignorable=True)  # KIP-320: detects truncation
    metadata: String | None
    error_code: Int16


class OffsetFetchTopicResponse(TopicRows[OffsetFetchPartitionResponse]):
    """The partitions of one topic."""


class OffsetFetchGroupResponse(Struct):
    """The topics of one group, from v8 on."""

    group_id: String
    topics: tuple[OffsetFetchTopicResponse, ...] = wire(max_items=MANY_ITEMS)
    error_code: Int16 = 0


class OffsetFetchResponse(ThrottledAnswer, since=3):
    """The committed offsets: `topics` up to v7, `groups` from v8 on."""

    topics: tuple[OffsetFetchTopicResponse, ...] = wire(until=7, max_items=MANY_ITEMS, default=())
    error_code: Int16 = wire(since=2, until=7, default=0, ignorable=True)  # KIP-88
    groups: tuple[OffsetFetchGroupResponse, ...] = wire(since=8, default=())  # KIP-709: many groups at once


class OffsetFetchTopic(Struct):
    """The partitions of one topic."""

    name: String
    partition_indexes: tuple[Int32, ...]


class OffsetFetchGroup(Struct):
    """A group and its topics, from v8 on. None requests all topics that have an offset.

    `member_id` and `member_epoch` belong to groups of the new protocol (KIP-848).
    """

    group_id: String
    member_id: String | None = wire(since=9, default=None, ignorable=True)  # KIP-848
    member_epoch: Int32 = wire(since=9, default=-1, ignorable=True)  # KIP-848
    topics: tuple[OffsetFetchTopic, ...] | None


class OffsetFetchRequest(
    Request[OffsetFetchResponse], key=9, versions=(0, 9), flexible_from=6, max_answer_bytes=32 * MIB
):
    """The groups and their partitions: `group_id` and `topics` up to v7, `groups` from v8 on.

    From v2 on, None as the topics requests all topics that have an offset.
    """

    group_id: String = wire(until=7, default="")
    topics: tuple[OffsetFetchTopic, ...] | None = wire(until=7, null_since=2, default=())  # KIP-88: null for all topics
    groups: tuple[OffsetFetchGroup, ...] = wire(since=8, default=())  # KIP-709: many groups at once
    require_stable: Bool = wire(since=7, default=False)  # KIP-447: waits for pending transactions

    def check_answer(self, answer: OffsetFetchResponse, version: int, /) -> None:
        """A group without named topics is answered with all topics that have an offset."""
        if version < GROUPS_SINCE:
            _check_topics(self.topics, answer.topics)
            return
        check_complete_echo(
            ((group.group_id,) for group in self.groups), ((group.group_id,) for group in answer.groups)
        )
        requested = {group.group_id: group.topics for group in self.groups}
        for group in answer.groups:
            _check_topics(requested[group.group_id], group.topics)


def _check_topics(requested: tuple[OffsetFetchTopic, ...] | None, answered: Iterable[OffsetFetchTopicResponse]) -> None:
    names = [(topic.name, number) for topic in requested or () for number in topic.partition_indexes]
    check_echo(None if requested is None else names, partitions_in(answered))
