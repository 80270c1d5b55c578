"""AddOffsetsToTxn: a transaction is about to commit offsets of a group (KIP-98)."""

from typing import ClassVar

from kafka_io.wire.schema import Api, Request, struct
from kafka_io.wire.types import Int16, Int32, Int64, String


@struct
class AddOffsetsToTxnResponse:
    """Whether the group was added."""

    throttle_time_ms: Int32 = 0
    error_code: Int16


@struct
class AddOffsetsToTxnRequest(Request[AddOffsetsToTxnResponse]):
    """The group whose offsets the transaction will commit."""

    API: ClassVar = Api(
        key=25, name="AddOffsetsToTxn", versions=(0, 4), flexible_from=3, answer=AddOffsetsToTxnResponse
    )

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String
