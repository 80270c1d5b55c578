"""What many messages have in common: their first fields, and topics that have a row for each of their partitions."""

from collections.abc import Callable, Iterable, Mapping
from types import GenericAlias
from typing import Any, Generic, TypeVar, get_args

from kafka_io.model import TopicPartition
from kafka_io.wire.schema import Struct, wire
from kafka_io.wire.types import Int16, Int32, Int64, String

ItemT = TypeVar("ItemT")
AnsweredT = TypeVar("AnsweredT")


class ThrottledAnswer(Struct):
    """The first field of an answer: how long the broker asks to wait before the next request (KIP-124).

    A subclass states the first version that has it: `ThrottledAnswer, since=1`.
    """

    throttle_time_ms: Int32 = 0

    def __init_subclass__(cls, *, since: int = 0) -> None:
        if since:
            cls.__annotations__["throttle_time_ms"] = Int32
            cls.throttle_time_ms = wire(since=since, default=0, ignorable=True)
        super().__init_subclass__()


class MemberOfGeneration(Struct):
    """The first fields of a request of a group's member, in the generation that it knows."""

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = wire(since=3, default=None)  # KIP-345: static members


class TxnProducer(Struct):
    """The first fields of a request about a transaction."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16


class NodeAddress(Struct):
    """The first fields of a broker: its id and its address."""

    node_id: Int32
    host: String
    port: Int32


class PartitionRow(Struct):
    """The first field of a row: the number of its partition."""

    partition_index: Int32


class TopicRows(Struct, Generic[ItemT]):
    """A topic, and an item for each of its partitions. A subclass says what its items are: `TopicRows[Int32]`."""

    name: String
    partitions: tuple[ItemT, ...]

    def __init_subclass__(cls) -> None:
        [item] = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]  # Python sets it on generic classes
        cls.__annotations__["partitions"] = GenericAlias(tuple, (item, ...))
        super().__init_subclass__()


RowT = TypeVar("RowT", bound=PartitionRow)
TopicT = TypeVar("TopicT", bound=TopicRows[Any])


def rows_by_partition(topics: Iterable[TopicRows[RowT]]) -> dict[TopicPartition, RowT]:
    """The rows of a request or an answer by partition, in their order."""
    return {TopicPartition(topic.name, row.partition_index): row for topic in topics for row in topic.partitions}


def topics_of(kind: type[TopicT], rows: Mapping[TopicPartition, Any]) -> tuple[TopicT, ...]:
    """The topics of type `kind` that have these rows, in their order."""
    topics: dict[str, list[Any]] = {}
    for partition, row in rows.items():
        topics.setdefault(partition.topic, []).append(row)
    return tuple(kind(name=name, partitions=tuple(items)) for name, items in topics.items())


def answered(
    kind: type[TopicT], topics: Iterable[TopicRows[ItemT]], answer: Callable[[str, ItemT], Any]
) -> tuple[TopicT, ...]:
    """The topics of a request as those of its answer, of type `kind`: `answer` makes an item of each item."""
    return tuple(
        kind(name=topic.name, partitions=tuple(answer(topic.name, item) for item in topic.partitions))
        for topic in topics
    )
