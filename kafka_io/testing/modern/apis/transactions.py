"""The requests of idempotent and transactional producers (KIP-98), from InitProducerId to EndTxn."""

import logging
from collections.abc import Callable

from kafka_io.error_codes import ErrorCode
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
from kafka_io.messages.offset_commit import OffsetCommitPartitionResponse, OffsetCommitTopicResponse
from kafka_io.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kafka_io.model import TopicPartition
from kafka_io.testing.modern.groups.offsets import CommittedOffset
from kafka_io.testing.modern.node import BrokerNode, Caller

logger = logging.getLogger(__name__)

_NO_PRODUCER = (-1, -1)


def init_producer_id(request: InitProducerIdRequest, node: BrokerNode, _caller: Caller) -> InitProducerIdResponse:
    """A producer id and an epoch. The earlier producer of the same transactional id is fenced."""
    producer_id, epoch = _NO_PRODUCER

    def begin() -> None:
        nonlocal producer_id, epoch
        producer_id, epoch = node.transactions.begin_producer(request.transactional_id, request.transaction_timeout_ms)

    code = _error_code(begin)
    # Fencing may have aborted a transaction. Then the last stable offset is higher, and committed records are readable.
    node.purgatory.notify()
    return InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=epoch)


def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, node: BrokerNode, _caller: Caller
) -> AddPartitionsToTxnResponse:
    """One error code for all partitions: all of them are added, or none."""
    producer = request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
    topics = request.v3_and_below_topics
    partitions = [TopicPartition(topic.name, number) for topic in topics for number in topic.partitions]

    def add() -> None:
        for partition in partitions:
            node.topics.find(partition.topic).log(partition.partition)  # raises an error if it does not exist
        node.transactions.add_partitions(request.v3_and_below_transactional_id, producer, partitions)

    code = _error_code(add)
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=tuple(
            TxnTopicResult(
                name=topic.name,
                results_by_partition=tuple(
                    TxnPartitionResult(partition_index=number, partition_error_code=code) for number in topic.partitions
                ),
            )
            for topic in topics
        )
    )


def add_offsets_to_txn(request: AddOffsetsToTxnRequest, node: BrokerNode, _caller: Caller) -> AddOffsetsToTxnResponse:
    """An error code if the group cannot be added to the transaction."""
    producer = request.producer_id, request.producer_epoch
    code = _error_code(lambda: node.transactions.add_group(request.transactional_id, producer, request.group_id))
    return AddOffsetsToTxnResponse(error_code=code)


def txn_offset_commit(request: TxnOffsetCommitRequest, node: BrokerNode, _caller: Caller) -> TxnOffsetCommitResponse:
    """One error code for all offsets: all of them are added to the transaction, or none."""
    producer = request.producer_id, request.producer_epoch
    offsets = {
        TopicPartition(topic.name, partition.partition_index): CommittedOffset(
            partition.committed_offset, partition.committed_leader_epoch, partition.committed_metadata or ""
        )
        for topic in request.topics
        for partition in topic.partitions
    }

    def commit() -> None:
        group = node.coordinator.find_or_create(request.group_id)
        if request.generation_id >= 0:
            group.check_commit(request.member_id, request.generation_id)
        node.transactions.add_offsets(request.transactional_id, producer, request.group_id, offsets)

    code = _error_code(commit)
    return TxnOffsetCommitResponse(
        topics=tuple(
            OffsetCommitTopicResponse(
                name=topic.name,
                partitions=tuple(
                    OffsetCommitPartitionResponse(partition_index=partition.partition_index, error_code=code)
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def end_txn(request: EndTxnRequest, node: BrokerNode, _caller: Caller) -> EndTxnResponse:
    """An error code if the transaction cannot be ended. Without one, its markers are in the logs."""
    producer = request.producer_id, request.producer_epoch
    code = _error_code(lambda: node.transactions.end(request.transactional_id, producer, commit=request.committed))
    node.purgatory.notify()
    return EndTxnResponse(error_code=code)


def _error_code(action: Callable[[], None]) -> int:
    """Run `action`, and return the error code of the answer."""
    try:
        action()
    except BrokerError as error:
        return error.code
    except OSError:
        logger.exception("the state of a transaction, or its markers, cannot be written")
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ErrorCode.NONE
