"""DescribeProducers: asks leaders for the producers of partitions, and for their open transactions (KIP-664)."""

from kafka_io.messages.echoes import check_echo, partitions_in
from kafka_io.messages.shared import PartitionRow, ThrottledAnswer, TopicRows
from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import MANY_ITEMS, Int16, Int32, Int64, String


class ProducerState(Struct):
    """A producer; `current_txn_start_offset` is -1 if it has no open transaction in the partition."""

    producer_id: Int64
    producer_epoch: Int32
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32
    current_txn_start_offset: Int64 = -1


class DescribedProducersPartition(PartitionRow):
    """The producers of one partition."""

    error_code: Int16
    error_message: String | None = None
    active_producers: tuple[ProducerState, ...] = wire(max_items=MANY_ITEMS)


class DescribedProducersTopic(TopicRows[DescribedProducersPartition]):
    """The partitions of one topic."""


class DescribeProducersResponse(ThrottledAnswer):
    """The producers, by topic."""

    topics: tuple[DescribedProducersTopic, ...]


class DescribeProducersTopic(Struct):
    """Partitions of one topic."""

    name: String
    partition_indexes: tuple[Int32, ...]


class DescribeProducersRequest(Request[DescribeProducersResponse], key=61, versions=(0, 0), flexible_from=0):
    """The partitions. The broker must be the leader of all of them."""

    topics: tuple[DescribeProducersTopic, ...]

    def check_answer(self, answer: DescribeProducersResponse, _version: int, /) -> None:
        requested = ((topic.name, number) for topic in self.topics for number in topic.partition_indexes)
        check_echo(requested, partitions_in(answer.topics))
