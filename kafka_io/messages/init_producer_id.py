"""InitProducerId: asks for a producer id and epoch, by which brokers recognise repeated batches (KIP-98)."""

from kafka_io.messages.shared import ThrottledAnswer
from kafka_io.wire.schema import Request, wire
from kafka_io.wire.types import Int16, Int32, Int64, String


class InitProducerIdResponse(ThrottledAnswer):
    """The producer's id and epoch."""

    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16


class InitProducerIdRequest(Request[InitProducerIdResponse], key=22, versions=(0, 5), flexible_from=2):
    """A producer. With a transactional id, all earlier producers with this id are fenced off."""

    transactional_id: String | None = None
    transaction_timeout_ms: Int32
    producer_id: Int64 = wire(since=3, default=-1)  # KIP-360: a producer recovers with its own id
    producer_epoch: Int16 = wire(since=3, default=-1)  # KIP-360
