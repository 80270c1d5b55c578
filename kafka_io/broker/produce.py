"""PRODUCE and MULTIPRODUCE: checked as a whole, stored as they came, never answered (facts, 1 to 3).

A refusal closes the socket, which is all a producer ever learns; a message that is too large does not even do that.
"""

import logging

from kafka_io.broker.logs import Logs
from kafka_io.broker.reply import NO_REPLY, Reply
from kafka_io.errors import Where
from kafka_io.records.batches import check_set
from kafka_io.v07.messages import RANDOM_PARTITION, MultiProduce, Produce

logger = logging.getLogger(__name__)


def produce(request: Produce, logs: Logs) -> Reply:
    """Append the whole messages of the set; a cut last one is dropped.

    The log is made first, so that an empty set, or one that is refused, makes its topic known.

    Raises:
        BrokerError: the topic is illegal, or has no such partition.
        WireError: a message of the set, or of what is compressed in it, is not valid; nothing of the set is stored.
    """
    partition = request.partition
    if partition == RANDOM_PARTITION:
        partition = logs.any_partition(request.topic)
    log = logs.find_or_create(request.topic, partition)
    where = Where(topic=request.topic, partition=partition)
    checked = check_set(request.message_set, where=where)
    if checked.largest_payload > logs.config.max_message_bytes:
        logger.warning(
            "a message of %d bytes dropped, max_message_bytes is %d [%s]",
            checked.largest_payload,
            logs.config.max_message_bytes,
            where,
        )
        return NO_REPLY
    log.append(request.message_set[: checked.whole_bytes], checked.messages)
    return NO_REPLY


def multiproduce(request: MultiProduce, logs: Logs) -> Reply:
    """Append set after set. Those before a bad one stay; it and those behind it are not stored. Same errors."""
    for each in request.produces:
        produce(each, logs)
    return NO_REPLY
