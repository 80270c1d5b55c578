"""AddPartitionsToTxn: partitions a transaction is about to write (KIP-98). From v4 on only brokers ask (KIP-890)."""

from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Bool, Int16, Int32, Int64, String


class TxnPartitionResult(Struct):
    """Whether one partition was added."""

    partition_index: Int32
    partition_error_code: Int16


class TxnTopicResult(Struct):
    """One topic."""

    name: String
    results_by_partition: tuple[TxnPartitionResult, ...]


class TxnResult(Struct):
    """One transaction, from v4 on."""

    transactional_id: String
    topic_results: tuple[TxnTopicResult, ...]


class AddPartitionsToTxnResponse(Struct):
    """What was added: by topic up to v3, by transaction from v4 on."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = wire(since=4, default=0, ignorable=True)  # KIP-890
    results_by_transaction: tuple[TxnResult, ...] = wire(since=4, default=())  # KIP-890: many transactions at once
    results_by_topic_v3_and_below: tuple[TxnTopicResult, ...] = wire(until=3, default=())


class TxnTopic(Struct):
    """Partitions of one topic."""

    name: String
    partitions: tuple[Int32, ...]


class Txn(Struct):
    """One transaction, from v4 on."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    verify_only: Bool = False
    topics: tuple[TxnTopic, ...]


class AddPartitionsToTxnRequest(Request[AddPartitionsToTxnResponse], key=24, versions=(0, 5), flexible_from=3):
    """What to add: to one transaction up to v3, to `transactions` from v4 on."""

    transactions: tuple[Txn, ...] = wire(since=4, default=())  # KIP-890: many transactions at once
    v3_and_below_transactional_id: String = wire(until=3, default="")
    v3_and_below_producer_id: Int64 = wire(until=3, default=0)
    v3_and_below_producer_epoch: Int16 = wire(until=3, default=0)
    v3_and_below_topics: tuple[TxnTopic, ...] = wire(until=3, default=())
