"""Message sets for brokers of 0.7, and the request that shows whether a broker accepted them.

See [kafka-0.7: Framing, Messages, Errors].
"""

from collections.abc import Sequence

from kafka_io.brokers.v07_connection import BrokerConnection07
from kafka_io.compression import CODECS, CODECS_07
from kafka_io.error_codes import ErrorCode07
from kafka_io.errors import TooLarge, Unsupported, Where, error_context
from kafka_io.model import BrokerPartition
from kafka_io.records.build import message_set
from kafka_io.records.layout import HEADER_BYTES, LENGTH_BYTES
from kafka_io.v07.messages import LATEST_TIME, RANDOM_PARTITION, OffsetsAnswer07, OffsetsRequest07

MAX_MESSAGE_BYTES = 1_000_000  # default max.message.size of a genuine broker: bytes of a payload, compressed if it is


def checked_set(payloads: Sequence[bytes], codec: int, *, max_message_bytes: int, where: Where) -> bytes:
    """The payloads as one message set, compressed by the codec of this number.

    Raises:
        TooLarge: a message is larger than `max_message_bytes`. A broker drops such a message without an error.
        Unsupported: 0.7 does not know the codec.
    """
    if codec not in CODECS_07:
        raise Unsupported(f"0.7 does not know {CODECS[codec].name}: choose none, gzip or snappy", where)
    data = message_set(payloads, codec=codec)
    # A compressed set is one message, whose payload is the compressed data.
    largest = len(data) - LENGTH_BYTES - HEADER_BYTES[1] if codec else max(map(len, payloads), default=0)
    if largest > max_message_bytes:
        raise TooLarge(f"a message of {largest} bytes is above max_message_bytes = {max_message_bytes}", where)
    return data


def confirm(connection: BrokerConnection07, topic: str, target: BrokerPartition) -> None:
    """Wait until the broker has processed every request sent over the connection so far.

    0.7 never answers PRODUCE. But a broker handles the requests of a connection in order, so the answer to an OFFSETS
    request shows that it accepted everything before.

    Raises:
        NetworkError: the broker closed the connection, which it does when it refuses a message set.
    """
    # Any partition will do, and every broker has partition 0. RANDOM_PARTITION is valid only in PRODUCE.
    partition = 0 if target.partition == RANDOM_PARTITION else target.partition
    where = Where(topic=topic, partition=str(target))
    with error_context(where):
        answer = connection.confirm(OffsetsRequest07(topic, partition, LATEST_TIME, 1))
        assert isinstance(answer, OffsetsAnswer07)
        ErrorCode07.check(answer.error, where)
