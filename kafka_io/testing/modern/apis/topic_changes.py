"""CreateTopics and DeleteTopics (KIP-4), and DeleteRecords (KIP-107)."""

from dataclasses import replace

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError
from kafka_io.messages.create_topics import (
    CreatableTopic,
    CreatedTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka_io.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResponse,
)
from kafka_io.messages.delete_topics import (
    DeletedTopic,
    DeleteTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafka_io.messages.shared import answered
from kafka_io.testing.modern.apis.results import attempt
from kafka_io.testing.modern.node import BrokerNode, Caller
from kafka_io.wire.types import NULL_UUID

_DEFAULT = -1
_END_OF_LOG = -1
_NO_OFFSET = -1


def create_topics(request: CreateTopicsRequest, node: BrokerNode, _caller: Caller) -> CreateTopicsResponse:
    """An error code for each topic. With `validate_only` nothing is created."""
    return CreateTopicsResponse(
        topics=tuple(_create_topic(topic, node, only_check=request.validate_only) for topic in request.topics)
    )


def delete_topics(request: DeleteTopicsRequest, node: BrokerNode, _caller: Caller) -> DeleteTopicsResponse:
    """An error code for each topic. The first versions have names alone (KIP-516)."""
    topics = (*request.topics, *(DeleteTopic(name=name) for name in request.topic_names))
    return DeleteTopicsResponse(responses=tuple(_delete_topic(topic, node) for topic in topics))


def delete_records(request: DeleteRecordsRequest, node: BrokerNode, _caller: Caller) -> DeleteRecordsResponse:
    """The new start of each log."""

    def delete(topic: str, partition: DeleteRecordsPartition) -> DeleteRecordsPartitionResponse:
        start = attempt(lambda: _delete_records(topic, partition, node), _NO_OFFSET)
        return DeleteRecordsPartitionResponse(
            partition_index=partition.partition_index, low_watermark=start.value, error_code=start.code
        )

    return DeleteRecordsResponse(topics=answered(DeleteRecordsTopicResponse, request.topics, delete))


def _create_topic(request: CreatableTopic, node: BrokerNode, *, only_check: bool) -> CreatedTopic:
    refused = CreatedTopic(name=request.name, error_code=ErrorCode.NONE)
    created = attempt(lambda: _create(request, node, only_check=only_check), refused)
    return replace(created.value, error_code=created.code, error_message=created.reason)


def _create(request: CreatableTopic, node: BrokerNode, *, only_check: bool) -> CreatedTopic:
    partitions = _count_partitions(request, node)
    topic = node.topics.create(request.name, partitions, only_check=only_check)
    return CreatedTopic(
        name=request.name,
        topic_id=topic.id if topic else NULL_UUID,
        error_code=ErrorCode.NONE,
        num_partitions=partitions,
        replication_factor=1,
        configs=(),
    )


def _count_partitions(request: CreatableTopic, node: BrokerNode) -> int:
    """The number of partitions of the new topic.

    Raises:
        BrokerError: the request needs more brokers, or settings that topics of this broker do not have.
    """
    if request.configs:
        raise BrokerError("topics of this broker have no settings of their own", code=ErrorCode.INVALID_CONFIG)
    if request.assignments:
        numbers = sorted(assignment.partition_index for assignment in request.assignments)
        brokers = {broker for assignment in request.assignments for broker in assignment.broker_ids}
        if numbers != list(range(len(numbers))) or brokers != {node.broker.id}:
            raise BrokerError("the cluster has one broker only", code=ErrorCode.INVALID_REPLICA_ASSIGNMENT)
        return len(numbers)
    if request.replication_factor not in {1, _DEFAULT}:
        raise BrokerError("the cluster has one broker only", code=ErrorCode.INVALID_REPLICATION_FACTOR)
    return node.config.partitions if request.num_partitions == _DEFAULT else request.num_partitions


def _delete_topic(request: DeleteTopic, node: BrokerNode) -> DeletedTopic:
    refused = DeletedTopic(name=request.name, topic_id=request.topic_id, error_code=ErrorCode.NONE)
    deleted = attempt(lambda: _delete(request, node), refused)
    return replace(deleted.value, error_code=deleted.code, error_message=deleted.reason)


def _delete(request: DeleteTopic, node: BrokerNode) -> DeletedTopic:
    topic = node.topics.find(request.name, request.topic_id)
    node.topics.delete(topic.name)
    node.coordinator.offsets.forget_topic(topic.name)
    return DeletedTopic(name=topic.name, topic_id=topic.id, error_code=ErrorCode.NONE)


def _delete_records(topic: str, request: DeleteRecordsPartition, node: BrokerNode) -> int:
    log = node.topics.find(topic).log(request.partition_index)
    return log.delete_before(log.end if request.offset == _END_OF_LOG else request.offset)
