"""InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn (KIP-98)."""

import logging
from collections.abc import Callable

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.groups.offsets import Committed
from kafka_io.broker.modern.node import Caller, Node
from kafka_io.errors import BrokerError
from kafka_io.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafka_io.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TxnPartitionResult,
    TxnTopicResult,
)
from kafka_io.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafka_io.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka_io.messages.txn_offset_commit import (
    TxnOffsetCommitPartitionResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitTopicResponse,
)

logger = logging.getLogger(__name__)

_NO_EPOCH = -1


def init_producer_id(request: InitProducerIdRequest, node: Node, _caller: Caller) -> InitProducerIdResponse:
    """An id and epoch; whoever had the transactional id before is shut out."""
    begun = _NO_EPOCH, _NO_EPOCH

    def begin() -> None:
        nonlocal begun
        begun = node.transactions.begin_producer(request.transactional_id, request.transaction_timeout_ms)

    code = _code(begin)
    node.arrivals.tell()  # an abort lets the stable part grow
    return InitProducerIdResponse(error_code=code, producer_id=begun[0], producer_epoch=begun[1])


def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, node: Node, _caller: Caller
) -> AddPartitionsToTxnResponse:
    """All of the partitions are added, or none."""
    producer = request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
    places = [(topic.name, number) for topic in request.v3_and_below_topics for number in topic.partitions]

    def add() -> None:
        for name, number in places:
            node.topics.find(name).log(number)
        node.transactions.add_partitions(request.v3_and_below_transactional_id, producer, places)

    code = _code(add)
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=tuple(
            TxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    TxnPartitionResult(partition_index=number, partition_error_code=code) for number in topic.partitions
                ),
            )
            for topic in request.v3_and_below_topics
        )
    )


def add_offsets_to_txn(request: AddOffsetsToTxnRequest, node: Node, _caller: Caller) -> AddOffsetsToTxnResponse:
    """Whether the group was added."""
    producer = request.producer_id, request.producer_epoch
    code = _code(lambda: node.transactions.add_group(request.transactional_id, producer, request.group_id))
    return AddOffsetsToTxnResponse(error_code=code)


def txn_offset_commit(request: TxnOffsetCommitRequest, node: Node, _caller: Caller) -> TxnOffsetCommitResponse:
    """All of the offsets are taken, or none."""
    producer = request.producer_id, request.producer_epoch
    offsets = {
        (topic.name, one.partition_index): Committed(
            one.committed_offset, one.committed_leader_epoch, one.committed_metadata or ""
        )
        for topic in request.topics
        for one in topic.partitions
    }

    def commit() -> None:
        group = node.coordinator.find(request.group_id)
        if request.generation_id >= 0:
            group.check_commit(request.member_id, request.generation_id)
        node.transactions.add_offsets(request.transactional_id, producer, request.group_id, offsets)

    code = _code(commit)
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitTopicResponse(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitPartitionResponse(partition_index=one.partition_index, error_code=code)
                    for one in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def end_txn(request: EndTxnRequest, node: Node, _caller: Caller) -> EndTxnResponse:
    """Whether the transaction is over; then its markers are in the logs."""
    producer = request.producer_id, request.producer_epoch
    code = _code(lambda: node.transactions.end(request.transactional_id, producer, commit=request.committed))
    node.arrivals.tell()
    return EndTxnResponse(error_code=code)


def _code(act: Callable[[], None]) -> int:
    """The code to answer for what `act` does."""
    try:
        act()
    except BrokerError as error:
        return error.code
    except OSError:
        logger.exception("a transaction could not be written")
        return Code.COORDINATOR_NOT_AVAILABLE
    return Code.NONE
