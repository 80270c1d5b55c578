"""AddOffsetsToTxn: announces that a transaction will commit the offsets of a group (KIP-98)."""

from kafka_io.messages.shared import ThrottledAnswer, TxnProducer
from kafka_io.wire.schema import Request
from kafka_io.wire.types import Int16, String


class AddOffsetsToTxnResponse(ThrottledAnswer):
    """The error code if the group was not added."""

    error_code: Int16


class AddOffsetsToTxnRequest(Request[AddOffsetsToTxnResponse], TxnProducer, key=25, versions=(0, 4), flexible_from=3):
    """The group whose offsets the transaction will commit."""

    group_id: String
