"""EndTxn: commits or aborts a transaction (KIP-98)."""

from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Bool, Int16, Int32, Int64, String


class EndTxnResponse(Struct):
    """The error code if the transaction did not end; from v5 on also the producer's next epoch (KIP-890)."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = wire(since=5, default=-1, ignorable=True)  # KIP-890: an epoch for each transaction
    producer_epoch: Int16 = wire(since=5, default=-1, ignorable=True)  # KIP-890


class EndTxnRequest(Request[EndTxnResponse], key=26, versions=(0, 5), flexible_from=3):
    """The transaction, and whether it is `committed` or aborted."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool
