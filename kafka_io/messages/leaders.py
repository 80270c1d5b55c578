"""The new leader of a partition, in answers of Produce and Fetch from a broker that is not the leader (KIP-951)."""

from kafka_io.messages.shared import NodeAddress
from kafka_io.wire.schema import Struct
from kafka_io.wire.types import Int32, String


class LeaderIdAndEpoch(Struct):
    """The current leader of a partition, if it is another broker."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class NodeEndpoint(NodeAddress):
    """The address of a leader that the answer names."""

    rack: String | None = None
