"""CreateTopics and DeleteTopics (KIP-4), and DeleteRecords (KIP-107)."""

import logging
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
from kafka_io.testing.modern.node import BrokerNode, Caller

logger = logging.getLogger(__name__)

_BY_ID_SINCE = 6  # DeleteTopics, KIP-516
_DEFAULT = -1
_END_OF_LOG = -1
_NO_OFFSET = -1


def create_topics(request: CreateTopicsRequest, node: BrokerNode, _caller: Caller) -> CreateTopicsResponse:
    """An error code for each topic. With `validate_only` nothing is created."""
    return CreateTopicsResponse(
        topics=tuple(_create_topic(topic, node, only_check=request.validate_only) for topic in request.topics)
    )


def delete_topics(request: DeleteTopicsRequest, node: BrokerNode, caller: Caller) -> DeleteTopicsResponse:
    """An error code for each topic."""
    if caller.version >= _BY_ID_SINCE:
        topics = request.topics
    else:
        topics = tuple(DeleteTopic(name=name) for name in request.topic_names)
    return DeleteTopicsResponse(responses=tuple(_delete_topic(topic, node) for topic in topics))


def delete_records(request: DeleteRecordsRequest, node: BrokerNode, _caller: Caller) -> DeleteRecordsResponse:
    """The new start of each log."""
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResponse(
                name=topic.name,
                partitions=tuple(_delete_records(topic.name, partition, node) for partition in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _create_topic(request: CreatableTopic, node: BrokerNode, *, only_check: bool) -> CreatedTopic:
    name = request.name
    try:
        partitions = _count_partitions(request, node)
        topic = node.topics.create(name, partitions, only_check=only_check)
    except BrokerError as error:
        return CreatedTopic(name=name, error_code=error.code, error_message=error.reason)
    except OSError as error:
        logger.exception("topic %r cannot be created", name)
        return CreatedTopic(name=name, error_code=ErrorCode.KAFKA_STORAGE_ERROR, error_message=str(error))
    response = CreatedTopic(
        name=name, error_code=ErrorCode.NONE, num_partitions=partitions, replication_factor=1, configs=()
    )
    return response if topic is None else replace(response, topic_id=topic.id)


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
    name, topic_id = request.name, request.topic_id
    code, reason = int(ErrorCode.NONE), None
    try:
        topic = node.topics.find_id(topic_id) if name is None else node.topics.find(name)
        name, topic_id = topic.name, topic.id
        node.topics.delete(name)
        node.coordinator.offsets.forget_topic(name)
    except BrokerError as error:
        code, reason = error.code, error.reason
    except OSError as error:
        logger.exception("topic %r cannot be deleted", name)
        code, reason = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
    return DeletedTopic(name=name, topic_id=topic_id, error_code=code, error_message=reason)


def _delete_records(topic: str, request: DeleteRecordsPartition, node: BrokerNode) -> DeleteRecordsPartitionResponse:
    code, start = int(ErrorCode.NONE), _NO_OFFSET
    try:
        log = node.topics.find(topic).log(request.partition_index)
        start = log.delete_before(log.end if request.offset == _END_OF_LOG else request.offset)
    except BrokerError as error:
        code = error.code
    except OSError:
        logger.exception("records of topic %r cannot be deleted", topic)
        code = ErrorCode.KAFKA_STORAGE_ERROR
    return DeleteRecordsPartitionResponse(partition_index=request.partition_index, low_watermark=start, error_code=code)
