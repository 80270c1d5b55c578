"""CreateTopics, DeleteTopics, DeleteRecords (KIP-4, KIP-107)."""

import logging
from dataclasses import replace

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.node import Caller, Node
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

logger = logging.getLogger(__name__)

_BY_ID_SINCE = 6
_DEFAULT = -1
_TO_THE_END = -1
_NO_OFFSET = -1


def create_topics(request: CreateTopicsRequest, node: Node, _caller: Caller) -> CreateTopicsResponse:
    """Whether each topic was made, or with `validate_only` could be."""
    return CreateTopicsResponse(
        topics=tuple(_created(one, node, only_check=request.validate_only) for one in request.topics)
    )


def delete_topics(request: DeleteTopicsRequest, node: Node, caller: Caller) -> DeleteTopicsResponse:
    """Whether each topic is gone."""
    by_name = tuple(DeleteTopic(name=name) for name in request.topic_names)
    asked = request.topics if caller.version >= _BY_ID_SINCE else by_name
    return DeleteTopicsResponse(responses=tuple(_deleted(one, node) for one in asked))


def delete_records(request: DeleteRecordsRequest, node: Node, _caller: Caller) -> DeleteRecordsResponse:
    """Where each log starts now."""
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsTopicResponse(
                name=topic.name, partitions=tuple(_shortened(topic.name, one, node) for one in topic.partitions)
            )
            for topic in request.topics
        )
    )


def _created(asked: CreatableTopic, node: Node, *, only_check: bool) -> CreatedTopic:
    try:
        partitions = _partitions(asked, node)
        topic = node.topics.create(asked.name, partitions, only_check=only_check)
    except BrokerError as error:
        return CreatedTopic(name=asked.name, error_code=error.code, error_message=error.reason)
    except OSError as error:
        logger.exception("topic %r cannot be made", asked.name)
        return CreatedTopic(name=asked.name, error_code=Code.KAFKA_STORAGE_ERROR, error_message=str(error))
    made = CreatedTopic(
        name=asked.name, error_code=Code.NONE, num_partitions=partitions, replication_factor=1, configs=()
    )
    return made if topic is None else replace(made, topic_id=topic.id)


def _partitions(asked: CreatableTopic, node: Node) -> int:
    """How many the topic is to have; raises BrokerError for what this broker cannot give."""
    if asked.configs:
        raise BrokerError("topics of this broker have no settings of their own", code=Code.INVALID_CONFIG)
    if asked.assignments:
        numbers = sorted(one.partition_index for one in asked.assignments)
        brokers = {broker for one in asked.assignments for broker in one.broker_ids}
        if numbers != list(range(len(numbers))) or brokers != {node.broker.id}:
            raise BrokerError("there is one broker only", code=Code.INVALID_REPLICA_ASSIGNMENT)
        return len(numbers)
    if asked.replication_factor not in {1, _DEFAULT}:
        raise BrokerError("there is one broker only", code=Code.INVALID_REPLICATION_FACTOR)
    return node.config.partitions if asked.num_partitions == _DEFAULT else asked.num_partitions


def _deleted(asked: DeleteTopic, node: Node) -> DeletedTopic:
    name, topic_id = asked.name, asked.topic_id
    try:
        topic = node.topics.find_id(topic_id) if name is None else node.topics.find(name)
        name, topic_id = topic.name, topic.id
        node.topics.delete(name)
        node.coordinator.offsets.forget_topic(name)
    except BrokerError as error:
        return DeletedTopic(name=name, topic_id=topic_id, error_code=error.code, error_message=error.reason)
    except OSError as error:
        logger.exception("topic %r cannot be deleted", name)
        return DeletedTopic(name=name, topic_id=topic_id, error_code=Code.KAFKA_STORAGE_ERROR, error_message=str(error))
    return DeletedTopic(name=name, topic_id=topic_id, error_code=Code.NONE)


def _shortened(topic: str, asked: DeleteRecordsPartition, node: Node) -> DeleteRecordsPartitionResponse:
    code, start = int(Code.NONE), _NO_OFFSET
    try:
        log = node.topics.find(topic).log(asked.partition_index)
        start = log.delete_before(log.end if asked.offset == _TO_THE_END else asked.offset)
    except BrokerError as error:
        code = error.code
    except OSError:
        logger.exception("records of %r could not be deleted", topic)
        code = Code.KAFKA_STORAGE_ERROR
    return DeleteRecordsPartitionResponse(partition_index=asked.partition_index, low_watermark=start, error_code=code)
