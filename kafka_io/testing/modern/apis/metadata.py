"""Metadata: the broker and the topics. A request for a topic may create it."""

from dataclasses import replace

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError
from kafka_io.messages.metadata import (
    MetadataBroker,
    MetadataPartition,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataTopic,
)
from kafka_io.testing.modern.apis.results import attempt
from kafka_io.testing.modern.log.header import LEADER_EPOCH
from kafka_io.testing.modern.node import BrokerNode, Caller
from kafka_io.testing.modern.topics import BrokerTopic


def metadata(request: MetadataRequest, node: BrokerNode, caller: Caller) -> MetadataResponse:
    """All topics, or the requested ones."""
    broker = node.broker
    wants_all = request.topics is None or (caller.version == 0 and not request.topics)
    if wants_all:
        topics = tuple(_describe(topic, broker.id) for topic in node.topics.all())
    else:
        auto_create = node.config.auto_create_topics and request.allow_auto_topic_creation
        topics = tuple(_find_and_describe(topic, node, auto_create=auto_create) for topic in request.topics or ())
    return MetadataResponse(
        brokers=(MetadataBroker(node_id=broker.id, host=broker.host, port=broker.port),),
        cluster_id=node.topics.cluster_id,
        controller_id=broker.id,
        topics=topics,
    )


def _find_and_describe(request: MetadataRequestTopic, node: BrokerNode, *, auto_create: bool) -> MetadataTopic:
    unknown = MetadataTopic(error_code=ErrorCode.NONE, name=request.name, topic_id=request.topic_id, partitions=())
    topic = attempt(lambda: _describe(_find(request, node, auto_create=auto_create), node.broker.id), unknown)
    return replace(topic.value, error_code=topic.code)


def _find(request: MetadataRequestTopic, node: BrokerNode, *, auto_create: bool) -> BrokerTopic:
    name = request.name
    if auto_create and name is not None and node.topics.get(name) is None:
        try:
            node.topics.create(name, node.config.partitions)
        except BrokerError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:  # another client has created it in between
                raise
    return node.topics.find(name, request.topic_id)


def _describe(topic: BrokerTopic, leader: int) -> MetadataTopic:
    partitions = tuple(
        MetadataPartition(
            error_code=ErrorCode.NONE,
            partition_index=number,
            leader_id=leader,
            leader_epoch=LEADER_EPOCH,
            replica_nodes=(leader,),
            isr_nodes=(leader,),
        )
        for number in range(len(topic.logs))
    )
    return MetadataTopic(error_code=ErrorCode.NONE, name=topic.name, topic_id=topic.id, partitions=partitions)
