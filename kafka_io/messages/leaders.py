"""Who leads a partition now, as Produce and Fetch tell when another broker was asked (KIP-951)."""

from kafka_io.wire.schema import Struct
from kafka_io.wire.types import Int32, String


class LeaderIdAndEpoch(Struct):
    """Who leads the partition now, when it is not who was asked."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class NodeEndpoint(Struct):
    """Where a leader named in the answer is."""

    node_id: Int32
    host: String
    port: Int32
    rack: String | None = None
