"""Metadata: the one broker, and the topics. A name that is asked for may make its topic."""

import logging

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.log.header import LEADER_EPOCH
from kafka_io.broker.modern.node import Caller, Node
from kafka_io.broker.modern.topics import Topic
from kafka_io.errors import BrokerError
from kafka_io.messages.metadata import (
    MetadataBroker,
    MetadataPartition,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataTopic,
)

logger = logging.getLogger(__name__)


def metadata(request: MetadataRequest, node: Node, caller: Caller) -> MetadataResponse:
    """Every topic, or those that were asked for."""
    broker = node.broker
    everything = request.topics is None or (caller.version == 0 and not request.topics)
    if everything:
        topics = tuple(_described(topic, broker.id) for topic in node.topics.all())
    else:
        creating = node.config.auto_create_topics and request.allow_auto_topic_creation
        topics = tuple(_asked(one, node, creating=creating) for one in request.topics or ())
    return MetadataResponse(
        brokers=(MetadataBroker(node_id=broker.id, host=broker.host, port=broker.port),),
        cluster_id=node.topics.cluster_id,
        controller_id=broker.id,
        topics=topics,
    )


def _asked(one: MetadataRequestTopic, node: Node, *, creating: bool) -> MetadataTopic:
    try:
        topic = node.topics.find_id(one.topic_id) if one.name is None else _by_name(one.name, node, creating=creating)
    except BrokerError as error:
        return MetadataTopic(error_code=error.code, name=one.name, topic_id=one.topic_id, partitions=())
    return _described(topic, node.broker.id)


def _by_name(name: str, node: Node, *, creating: bool) -> Topic:
    try:
        return node.topics.find(name)
    except BrokerError as error:
        if error.code != Code.UNKNOWN_TOPIC_OR_PARTITION or not creating:
            raise
    try:
        node.topics.create(name, node.config.partitions)
    except BrokerError as error:
        if error.code != Code.TOPIC_ALREADY_EXISTS:  # another client was quicker
            raise
    except OSError as error:
        logger.exception("topic %r cannot be made", name)
        raise BrokerError("the disk refuses", code=Code.KAFKA_STORAGE_ERROR) from error
    return node.topics.find(name)


def _described(topic: Topic, leader: int) -> MetadataTopic:
    partitions = tuple(
        MetadataPartition(
            error_code=Code.NONE,
            partition_index=number,
            leader_id=leader,
            leader_epoch=LEADER_EPOCH,
            replica_nodes=(leader,),
            isr_nodes=(leader,),
        )
        for number in range(len(topic.logs))
    )
    return MetadataTopic(error_code=Code.NONE, name=topic.name, topic_id=topic.id, partitions=partitions)
