"""Produce: the records of each partition are validated, stored and answered independently of the others."""

import logging

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import NOWHERE, BrokerError, error_context
from kafka_io.messages.produce import (
    BY_ID_SINCE,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResponse,
)
from kafka_io.model import TopicPartition
from kafka_io.testing.modern.node import BrokerNode, Caller
from kafka_io.testing.modern.topics import BrokerTopic
from kafka_io.testing.modern.validation import ValidatedRecords, validate_produced

logger = logging.getLogger(__name__)

_VALID_ACKS = (0, 1, -1)
_NO_OFFSET = -1


def produce(request: ProduceRequest, node: BrokerNode, caller: Caller) -> ProduceResponse | None:
    """The base offset or the error code of each partition; None with acks 0, because the client expects no answer.

    Raises:
        BrokerError: records were refused and acks is 0. The session closes the connection, the only possible sign.
    """
    topics = tuple(_produce_topic(topic, request.acks, node, caller) for topic in request.topic_data)
    node.purgatory.notify()
    if request.acks:
        return ProduceResponse(responses=topics)
    for topic in topics:
        for partition in topic.partition_responses:
            ErrorCode.check(partition.error_code, NOWHERE)
    return None


def _produce_topic(request: ProduceTopic, acks: int, node: BrokerNode, caller: Caller) -> ProduceTopicResponse:
    topic: BrokerTopic | BrokerError
    try:
        if caller.version < BY_ID_SINCE:
            topic = node.topics.find(request.name)
        else:
            topic = node.topics.find_id(request.topic_id)
    except BrokerError as error:
        topic = error
    partitions = tuple(_produce_partition(topic, partition, acks, node, caller) for partition in request.partition_data)
    return ProduceTopicResponse(name=request.name, topic_id=request.topic_id, partition_responses=partitions)


def _produce_partition(
    topic: BrokerTopic | BrokerError, request: ProducePartition, acks: int, node: BrokerNode, caller: Caller
) -> ProducePartitionResponse:
    try:
        if isinstance(topic, BrokerError):
            raise topic
        return _store(topic, request, acks, node, caller)
    except BrokerError as error:
        logger.info("records refused: %s", error)
        return ProducePartitionResponse(
            index=request.index, error_code=error.code, base_offset=_NO_OFFSET, error_message=error.reason
        )
    except OSError:
        logger.exception("records cannot be written")
        return ProducePartitionResponse(
            index=request.index, error_code=ErrorCode.KAFKA_STORAGE_ERROR, base_offset=_NO_OFFSET
        )


def _store(
    topic: BrokerTopic, request: ProducePartition, acks: int, node: BrokerNode, caller: Caller
) -> ProducePartitionResponse:
    if acks not in _VALID_ACKS:
        raise BrokerError(f"acks is {acks}, but must be 0, 1 or -1", code=ErrorCode.INVALID_REQUIRED_ACKS)
    log = topic.log(request.index)
    with error_context(log.where):
        validated = validate_produced(memoryview(request.records or b""), caller.version, node.config)
        base_offset = _append(validated, topic, request.index, node)
    return ProducePartitionResponse(
        index=request.index, error_code=ErrorCode.NONE, base_offset=base_offset, log_start_offset=log.start
    )


def _append(validated: ValidatedRecords, topic: BrokerTopic, partition: int, node: BrokerNode) -> int:
    header, log = validated.header, topic.log(partition)
    if not header.is_transactional:
        return log.append(validated.batch, header)
    # The transaction cannot end inside this context, so the batch cannot be written after the marker.
    with node.transactions.writing((header.producer_id, header.producer_epoch), TopicPartition(topic.name, partition)):
        return log.append(validated.batch, header)
