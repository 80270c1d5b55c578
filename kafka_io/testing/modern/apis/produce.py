"""Produce: the records of each partition are validated, stored and answered independently of the others."""

from contextlib import nullcontext

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
from kafka_io.testing.modern.apis.results import attempt
from kafka_io.testing.modern.log.header import BatchHeader
from kafka_io.testing.modern.node import BrokerNode, Caller
from kafka_io.testing.modern.transactions import ProducerIdAndEpoch
from kafka_io.testing.modern.validation import validate_produced

_VALID_ACKS = (0, 1, -1)
_NOT_STORED = (-1, -1)  # the base offset, and the start of the log


def produce(request: ProduceRequest, node: BrokerNode, caller: Caller) -> ProduceResponse | None:
    """The base offset or the error code of each partition; None with acks 0, because the client expects no answer.

    Raises:
        BrokerError: records were refused and acks is 0. The session closes the connection, the only possible sign.
    """

    def store(topic: ProduceTopic, partition: ProducePartition) -> ProducePartitionResponse:
        stored = attempt(lambda: _store(topic, partition, request.acks, node, caller), _NOT_STORED)
        base_offset, log_start = stored.value
        return ProducePartitionResponse(
            index=partition.index,
            error_code=stored.code,
            base_offset=base_offset,
            log_start_offset=log_start,
            error_message=stored.reason,
        )

    topics = tuple(
        ProduceTopicResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=tuple(store(topic, partition) for partition in topic.partition_data),
        )
        for topic in request.topic_data
    )
    node.purgatory.notify()
    if request.acks:
        return ProduceResponse(responses=topics)
    for topic in topics:
        for partition in topic.partition_responses:
            ErrorCode.check(partition.error_code, NOWHERE)
    return None


def _store(
    topic_request: ProduceTopic, request: ProducePartition, acks: int, node: BrokerNode, caller: Caller
) -> tuple[int, int]:
    """Store the records of one partition. Returns their base offset, and the start of the log."""
    name = topic_request.name if caller.version < BY_ID_SINCE else None
    topic = node.topics.find(name, topic_request.topic_id)
    if acks not in _VALID_ACKS:
        raise BrokerError(f"acks is {acks}, but must be 0, 1 or -1", code=ErrorCode.INVALID_REQUIRED_ACKS)
    log = topic.log(request.index)
    with error_context(log.where):
        batch = validate_produced(memoryview(request.records or b""), caller.version, node.config)
        header = BatchHeader.parse(batch)
        producer = ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
        # The transaction cannot end inside this context, so the batch cannot be written after the marker.
        transaction = (
            node.transactions.writing(producer, topic.name, request.index) if header.is_transactional else nullcontext()
        )
        with transaction:
            return log.append(batch), log.start
