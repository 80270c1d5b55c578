"""AddPartitionsToTxn: announces the partitions that a transaction will write to (KIP-98).

From v4 on only brokers send this request (KIP-890).
"""

from kafka_io.messages.echoes import check_complete_echo, partitions_in
from kafka_io.messages.shared import PartitionRow, ThrottledAnswer, TopicRows
from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Bool, Int16, Int32, Int64, String


class TxnPartitionResult(PartitionRow):
    """The error code if one partition was not added."""

    partition_error_code: Int16


class TxnTopicResult(Struct):
    """The results for the partitions of one topic."""

    name: String
    results_by_partition: tuple[TxnPartitionResult, ...]


class TxnResult(Struct):
    """The results for one transaction, from v4 on."""

    transactional_id: String
    topic_results: tuple[TxnTopicResult, ...]


class AddPartitionsToTxnResponse(ThrottledAnswer):
    """The results, by topic up to v3, and by transaction from v4 on."""

    error_code: Int16 = wire(since=4, default=0, ignorable=True)  # KIP-890
    results_by_transaction: tuple[TxnResult, ...] = wire(since=4, default=())  # KIP-890: many transactions at once
    results_by_topic_v3_and_below: tuple[TxnTopicResult, ...] = wire(until=3, default=())


class TxnTopic(TopicRows[Int32]):
    """Partitions of one topic."""


class Txn(Struct):
    """A transaction and its new partitions, from v4 on."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    verify_only: Bool = False
    topics: tuple[TxnTopic, ...]


class AddPartitionsToTxnRequest(Request[AddPartitionsToTxnResponse], key=24, versions=(0, 5), flexible_from=3):
    """The partitions of one transaction up to v3, and of several `transactions` from v4 on."""

    transactions: tuple[Txn, ...] = wire(since=4, default=())  # KIP-890: many transactions at once
    v3_and_below_transactional_id: String = wire(until=3, default="")
    v3_and_below_producer_id: Int64 = wire(until=3, default=0)
    v3_and_below_producer_epoch: Int16 = wire(until=3, default=0)
    v3_and_below_topics: tuple[TxnTopic, ...] = wire(until=3, default=())

    def check_answer(self, answer: AddPartitionsToTxnResponse, _version: int, /) -> None:
        """Clients do not send v4 or later."""
        check_complete_echo(
            ((topic.name, number) for topic in self.v3_and_below_topics for number in topic.partitions),
            partitions_in(answer.results_by_topic_v3_and_below, partitions="results_by_partition"),
        )
