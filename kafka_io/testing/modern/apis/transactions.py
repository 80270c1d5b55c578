"""The requests of idempotent and transactional producers (KIP-98), from InitProducerId to EndTxn."""

from kafka_io.error_codes import ErrorCode
from kafka_io.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafka_io.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TxnPartitionResult,
    TxnTopic,
    TxnTopicResult,
)
from kafka_io.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafka_io.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka_io.messages.offset_commit import OffsetCommitPartitionResponse, OffsetCommitTopicResponse
from kafka_io.messages.shared import answered
from kafka_io.messages.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kafka_io.testing.modern.apis.offset_commit import committed_offset
from kafka_io.testing.modern.apis.results import attempt, error_code
from kafka_io.testing.modern.node import BrokerNode, Caller
from kafka_io.testing.modern.transactions import ProducerIdAndEpoch

_NO_PRODUCER = ProducerIdAndEpoch(-1, -1)
_DISK_ERROR = ErrorCode.COORDINATOR_NOT_AVAILABLE  # the state of a transaction, or its markers, cannot be written


def init_producer_id(request: InitProducerIdRequest, node: BrokerNode, _caller: Caller) -> InitProducerIdResponse:
    """A producer id and an epoch. The earlier producer of the same transactional id is fenced."""
    producer = attempt(
        lambda: node.transactions.begin_producer(request.transactional_id, request.transaction_timeout_ms),
        _NO_PRODUCER,
        disk_error=_DISK_ERROR,
    )
    # Fencing may have aborted a transaction. Then the last stable offset is higher, and committed records are readable.
    node.purgatory.notify()
    return InitProducerIdResponse(
        error_code=producer.code, producer_id=producer.value.producer_id, producer_epoch=producer.value.epoch
    )


def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, node: BrokerNode, _caller: Caller
) -> AddPartitionsToTxnResponse:
    """One error code for all partitions: all of them are added, or none."""
    code = error_code(lambda: _add_partitions(request, node), disk_error=_DISK_ERROR)

    def results(topic: TxnTopic) -> TxnTopicResult:
        rows = (TxnPartitionResult(partition_index=number, partition_error_code=code) for number in topic.partitions)
        return TxnTopicResult(name=topic.name, results_by_partition=tuple(rows))

    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=tuple(map(results, request.v3_and_below_topics)))


def add_offsets_to_txn(request: AddOffsetsToTxnRequest, node: BrokerNode, _caller: Caller) -> AddOffsetsToTxnResponse:
    """An error code if the group cannot be added to the transaction."""
    code = error_code(
        lambda: node.transactions.add_group(request.transactional_id, _producer_of(request), request.group_id),
        disk_error=_DISK_ERROR,
    )
    return AddOffsetsToTxnResponse(error_code=code)


def txn_offset_commit(request: TxnOffsetCommitRequest, node: BrokerNode, _caller: Caller) -> TxnOffsetCommitResponse:
    """One error code for all offsets: all of them are added to the transaction, or none."""
    code = error_code(lambda: _add_offsets(request, node), disk_error=_DISK_ERROR)

    def result(_topic: str, partition: TxnOffsetCommitPartition) -> OffsetCommitPartitionResponse:
        return OffsetCommitPartitionResponse(partition_index=partition.partition_index, error_code=code)

    return TxnOffsetCommitResponse(topics=answered(OffsetCommitTopicResponse, request.topics, result))


def end_txn(request: EndTxnRequest, node: BrokerNode, _caller: Caller) -> EndTxnResponse:
    """An error code if the transaction cannot be ended. Without one, its markers are in the logs."""
    code = error_code(
        lambda: node.transactions.end(request.transactional_id, _producer_of(request), commit=request.committed),
        disk_error=_DISK_ERROR,
    )
    node.purgatory.notify()
    return EndTxnResponse(error_code=code)


def _producer_of(request: AddOffsetsToTxnRequest | TxnOffsetCommitRequest | EndTxnRequest) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(request.producer_id, request.producer_epoch)


def _add_partitions(request: AddPartitionsToTxnRequest, node: BrokerNode) -> None:
    partitions = [(topic.name, number) for topic in request.v3_and_below_topics for number in topic.partitions]
    for topic, number in partitions:
        node.topics.find(topic).log(number)  # raises an error if the partition does not exist
    producer = ProducerIdAndEpoch(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    node.transactions.add_partitions(request.v3_and_below_transactional_id, producer, partitions)


def _add_offsets(request: TxnOffsetCommitRequest, node: BrokerNode) -> None:
    group = node.coordinator.find_or_create(request.group_id)
    if request.generation_id >= 0:
        group.check_commit(request.member_id, request.generation_id)
    offsets = [committed_offset(topic.name, row) for topic in request.topics for row in topic.partitions]
    node.transactions.add_offsets(request.transactional_id, _producer_of(request), request.group_id, offsets)
