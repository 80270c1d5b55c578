"""The handler of each API, and the APIs and versions that each generation of the broker supports."""

from collections.abc import Callable, Mapping
from typing import Any

from kafka_io.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka_io.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafka_io.messages.create_topics import CreateTopicsRequest
from kafka_io.messages.delete_records import DeleteRecordsRequest
from kafka_io.messages.delete_topics import DeleteTopicsRequest
from kafka_io.messages.describe_configs import DescribeConfigsRequest
from kafka_io.messages.describe_groups import DescribeGroupsRequest
from kafka_io.messages.end_txn import EndTxnRequest
from kafka_io.messages.fetch import FetchRequest
from kafka_io.messages.find_coordinator import FindCoordinatorRequest
from kafka_io.messages.handshake import ApiVersionsRequest
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
from kafka_io.model import Generation
from kafka_io.testing.modern.apis.describe_configs import describe_configs
from kafka_io.testing.modern.apis.epochs import offset_for_leader_epoch
from kafka_io.testing.modern.apis.fetch import fetch
from kafka_io.testing.modern.apis.groups import describe_groups, find_coordinator, list_groups
from kafka_io.testing.modern.apis.list_offsets import list_offsets
from kafka_io.testing.modern.apis.membership import heartbeat, join_group, leave_group, sync_group
from kafka_io.testing.modern.apis.metadata import metadata
from kafka_io.testing.modern.apis.offset_commit import offset_commit
from kafka_io.testing.modern.apis.offset_fetch import offset_fetch
from kafka_io.testing.modern.apis.produce import produce
from kafka_io.testing.modern.apis.topic_changes import create_topics, delete_records, delete_topics
from kafka_io.testing.modern.apis.transactions import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    txn_offset_commit,
)
from kafka_io.testing.modern.node import BrokerNode, Caller
from kafka_io.wire.schema import Request

HANDLERS: Mapping[type[Request[Any]], Callable[[Any, BrokerNode, Caller], Any]] = {
    ProduceRequest: produce,
    FetchRequest: fetch,
    ListOffsetsRequest: list_offsets,
    MetadataRequest: metadata,
    OffsetCommitRequest: offset_commit,
    OffsetFetchRequest: offset_fetch,
    FindCoordinatorRequest: find_coordinator,
    JoinGroupRequest: join_group,
    HeartbeatRequest: heartbeat,
    LeaveGroupRequest: leave_group,
    SyncGroupRequest: sync_group,
    DescribeGroupsRequest: describe_groups,
    ListGroupsRequest: list_groups,
    CreateTopicsRequest: create_topics,
    DeleteTopicsRequest: delete_topics,
    DeleteRecordsRequest: delete_records,
    DescribeConfigsRequest: describe_configs,
    InitProducerIdRequest: init_producer_id,
    AddPartitionsToTxnRequest: add_partitions_to_txn,
    AddOffsetsToTxnRequest: add_offsets_to_txn,
    TxnOffsetCommitRequest: txn_offset_commit,
    EndTxnRequest: end_txn,
    OffsetForLeaderEpochRequest: offset_for_leader_epoch,
}

VERSIONS_BY_GENERATION: Mapping[Generation, Mapping[type[Request[Any]], tuple[int, int]]] = {
    # The APIs of 0.8.2, which 0.9 supports too. A genuine broker stores offsets that are committed with v0 in
    # ZooKeeper; this one stores them itself.
    Generation.V08: {
        ProduceRequest: (0, 0),
        FetchRequest: (0, 0),
        ListOffsetsRequest: (0, 0),
        MetadataRequest: (0, 0),
        OffsetCommitRequest: (0, 1),
        OffsetFetchRequest: (0, 1),
        FindCoordinatorRequest: (0, 0),
    },
    Generation.MODERN: {
        **{request_type: request_type.API.versions for request_type in HANDLERS},
        ApiVersionsRequest: ApiVersionsRequest.API.versions,
        # Later versions are for requests between brokers, or for the transaction protocol of KIP-890.
        AddPartitionsToTxnRequest: (0, 3),
        TxnOffsetCommitRequest: (0, 4),
        EndTxnRequest: (0, 4),
    },
}
"""The requests that a generation of the broker answers, and the first and last version of each."""
