"""DescribeCluster: the brokers, or from v1 on the controllers, of the cluster (KIP-700, KIP-919)."""

from kafka_io.messages.metadata import NO_OPERATIONS
from kafka_io.wire.schema import Request, Struct, wire
from kafka_io.wire.types import Bool, Int8, Int16, Int32, String


class DescribeClusterBroker(Struct):
    """A broker or controller."""

    broker_id: Int32
    host: String
    port: Int32
    rack: String | None = None
    is_fenced: Bool = wire(since=2, default=False)  # KIP-1073


class DescribeClusterResponse(Struct):
    """The brokers or controllers of the cluster."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    endpoint_type: Int8 = wire(since=1, default=1)  # KIP-919: brokers or controllers
    cluster_id: String
    controller_id: Int32 = -1
    brokers: tuple[DescribeClusterBroker, ...]
    cluster_authorized_operations: Int32 = NO_OPERATIONS


class DescribeClusterRequest(Request[DescribeClusterResponse], key=60, versions=(0, 2), flexible_from=0):
    """A request for brokers (endpoint type 1) or controllers (2)."""

    include_cluster_authorized_operations: Bool = False
    endpoint_type: Int8 = wire(since=1, default=1)  # KIP-919: brokers or controllers
    include_fenced_brokers: Bool = wire(since=2, default=False)  # KIP-1073
