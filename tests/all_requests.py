"""The request class of each API, by API key."""

from collections.abc import Mapping
from typing import Any

from kafka_io.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka_io.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafka_io.messages.create_topics import CreateTopicsRequest
from kafka_io.messages.delete_records import DeleteRecordsRequest
from kafka_io.messages.delete_topics import DeleteTopicsRequest
from kafka_io.messages.describe_configs import DescribeConfigsRequest
from kafka_io.messages.describe_groups import DescribeGroupsRequest
from kafka_io.messages.describe_producers import DescribeProducersRequest
from kafka_io.messages.end_txn import EndTxnRequest
from kafka_io.messages.fetch import FetchRequest
from kafka_io.messages.find_coordinator import FindCoordinatorRequest
from kafka_io.messages.handshake import ApiVersionsRequest, SaslAuthenticateRequest, SaslHandshakeRequest
from kafka_io.messages.heartbeat import HeartbeatRequest
from kafka_io.messages.init_producer_id import InitProducerIdRequest
from kafka_io.messages.join_group import JoinGroupRequest
from kafka_io.messages.leave_group import LeaveGroupRequest
from kafka_io.messages.list_groups import ListGroupsRequest
from kafka_io.messages.list_offsets import ListOffsetsRequest
from kafka_io.messages.metadata import MetadataRequest
from kafka_io.messages.offset_commit import OffsetCommitRequest
from kafka_io.messages.offset_fetch import OffsetFetchRequest
from kafka_io.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafka_io.messages.produce import ProduceRequest
from kafka_io.messages.sync_group import SyncGroupRequest
from kafka_io.messages.txn_offset_commit import TxnOffsetCommitRequest
from kafka_io.wire.schema import Request
from tests.describe_cluster import DescribeClusterRequest

REQUESTS: Mapping[int, type[Request[Any]]] = {
    kind.API.key: kind
    for kind in (
        ProduceRequest,
        FetchRequest,
        ListOffsetsRequest,
        MetadataRequest,
        OffsetCommitRequest,
        OffsetFetchRequest,
        FindCoordinatorRequest,
        JoinGroupRequest,
        HeartbeatRequest,
        LeaveGroupRequest,
        SyncGroupRequest,
        DescribeGroupsRequest,
        ListGroupsRequest,
        SaslHandshakeRequest,
        ApiVersionsRequest,
        CreateTopicsRequest,
        DeleteTopicsRequest,
        DeleteRecordsRequest,
        InitProducerIdRequest,
        OffsetForLeaderEpochRequest,
        AddPartitionsToTxnRequest,
        AddOffsetsToTxnRequest,
        EndTxnRequest,
        TxnOffsetCommitRequest,
        DescribeConfigsRequest,
        SaslAuthenticateRequest,
        DescribeClusterRequest,
        DescribeProducersRequest,
    )
}
