"""EndTxn: commits or aborts a transaction (KIP-98)."""

from kafka_io.messages.shared import ThrottledAnswer, TxnProducer
from kafka_io.wire.schema import Request, wire
from kafka_io.wire.types import Bool, Int16, Int64


class EndTxnResponse(ThrottledAnswer):
    """The error code if the transaction did not end; from v5 on also the producer's next epoch (KIP-890)."""

    error_code: Int16
    producer_id: Int64 = wire(since=5, default=-1, ignorable=True)  # KIP-890: an epoch for each transaction
    producer_epoch: Int16 = wire(since=5, default=-1, ignorable=True)  # KIP-890


class EndTxnRequest(Request[EndTxnResponse], TxnProducer, key=26, versions=(0, 5), flexible_from=3):
    """The transaction, and whether it is `committed` or aborted."""

    committed: Bool
