"""AddPartitionsToTxn: partitions a transaction is about to write (KIP-98). From v4 on only brokers ask (KIP-890)."""

from typing import ClassVar

from kafka_io.wire.schema import Api, Request, struct, wire
from kafka_io.wire.types import Bool, Int16, Int32, Int64, String


@struct
class TxnPartitionResult:
    """Whether one partition was added."""

    partition_index: Int32
    partition_error_code: Int16


@struct
class TxnTopicResult:
    """One topic."""

    name: String
    results_by_partition: tuple[TxnPartitionResult, ...]


@struct
class TxnResult:
    """One transaction, from v4 on."""

    transactional_id: String
    topic_results: tuple[TxnTopicResult, ...]


@struct
class AddPartitionsToTxnResponse:
    """What was added: by topic up to v3, by transaction from v4 on."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = wire(since=4, default=0, ignorable=True)  # KIP-890
    results_by_transaction: tuple[TxnResult, ...] = wire(since=4, default=())  # KIP-890: many transactions at once
    results_by_topic_v3_and_below: tuple[TxnTopicResult, ...] = wire(until=3, default=())


@struct
class TxnTopic:
    """Partitions of one topic."""

    name: String
    partitions: tuple[Int32, ...]


@struct
class Txn:
    """One transaction, from v4 on."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    verify_only: Bool = False
    topics: tuple[TxnTopic, ...]


@struct
class AddPartitionsToTxnRequest(Request[AddPartitionsToTxnResponse]):
    """What to add: to one transaction up to v3, to `transactions` from v4 on."""

    API: ClassVar = Api(
        key=24, name="AddPartitionsToTxn", versions=(0, 5), flexible_from=3, answer=AddPartitionsToTxnResponse
    )

    transactions: tuple[Txn, ...] = wire(since=4, default=())  # KIP-890: many transactions at once
    v3_and_below_transactional_id: String = wire(until=3, default="")
    v3_and_below_producer_id: Int64 = wire(until=3, default=0)
    v3_and_below_producer_epoch: Int16 = wire(until=3, default=0)
    v3_and_below_topics: tuple[TxnTopic, ...] = wire(until=3, default=())
