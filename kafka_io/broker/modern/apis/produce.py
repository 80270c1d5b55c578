"""Produce: each partition's records are checked and stored by themselves, and answered by themselves."""

import logging

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.incoming import Incoming, incoming
from kafka_io.broker.modern.node import Caller, Node
from kafka_io.broker.modern.topics import Topic
from kafka_io.error_codes import MODERN, check
from kafka_io.errors import NOWHERE, BrokerError, placing
from kafka_io.messages.produce import (
    BY_ID_SINCE,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResponse,
)

logger = logging.getLogger(__name__)

_ACKS = (0, 1, -1)
_NO_OFFSET = -1


def produce(request: ProduceRequest, node: Node, caller: Caller) -> ProduceResponse | None:
    """Where the records went; None with acks 0.

    Raises:
        BrokerError: with acks 0 something was refused. To close the connection is all that can be said of it then.
    """
    answers = tuple(_topic(topic, request.acks, node, caller) for topic in request.topic_data)
    node.arrivals.tell()
    if request.acks:
        return ProduceResponse(responses=answers)
    for code in (one.error_code for topic in answers for one in topic.partition_responses):
        check(code, NOWHERE, MODERN)
    return None


def _topic(asked: ProduceTopic, acks: int, node: Node, caller: Caller) -> ProduceTopicResponse:
    topic: Topic | BrokerError
    try:
        topic = node.topics.find(asked.name) if caller.version < BY_ID_SINCE else node.topics.find_id(asked.topic_id)
    except BrokerError as error:
        topic = error
    answers = tuple(_partition(topic, one, acks, node, caller) for one in asked.partition_data)
    return ProduceTopicResponse(name=asked.name, topic_id=asked.topic_id, partition_responses=answers)


def _partition(
    topic: Topic | BrokerError, asked: ProducePartition, acks: int, node: Node, caller: Caller
) -> ProducePartitionResponse:
    try:
        if isinstance(topic, BrokerError):
            raise topic
        return _stored(topic, asked, acks, node, caller)
    except BrokerError as error:
        logger.info("records refused: %s", error)
        return ProducePartitionResponse(
            index=asked.index, error_code=error.code, base_offset=_NO_OFFSET, error_message=error.reason
        )
    except OSError:
        logger.exception("records could not be written")
        return ProducePartitionResponse(index=asked.index, error_code=Code.KAFKA_STORAGE_ERROR, base_offset=_NO_OFFSET)


def _stored(topic: Topic, asked: ProducePartition, acks: int, node: Node, caller: Caller) -> ProducePartitionResponse:
    if acks not in _ACKS:
        raise BrokerError(f"acks {acks}", code=Code.INVALID_REQUIRED_ACKS)
    log = topic.log(asked.index)
    with placing(log.where):
        fit = incoming(memoryview(asked.records or b""), caller.version, node.config)
        base = _appended(fit, topic, asked.index, node)
    return ProducePartitionResponse(
        index=asked.index, error_code=Code.NONE, base_offset=base, log_start_offset=log.start
    )


def _appended(fit: Incoming, topic: Topic, partition: int, node: Node) -> int:
    header, log = fit.header, topic.log(partition)
    if not header.is_transactional:
        return log.append(fit.batch, header)
    with node.transactions.writing((header.producer_id, header.producer_epoch), (topic.name, partition)):
        return log.append(fit.batch, header)
