"""AddOffsetsToTxn: announces that a transaction will commit the offsets of a group (KIP-98)."""

from kafka_io.wire.schema import Request, Struct
from kafka_io.wire.types import Int16, Int32, Int64, String


class AddOffsetsToTxnResponse(Struct):
    """The error code if the group was not added."""

    throttle_time_ms: Int32 = 0
    error_code: Int16


class AddOffsetsToTxnRequest(Request[AddOffsetsToTxnResponse], key=25, versions=(0, 4), flexible_from=3):
    """The group whose offsets the transaction will commit."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String
