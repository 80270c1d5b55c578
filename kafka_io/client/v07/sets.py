"""Message sets for brokers of 0.7, and how it is found out that they were taken in (facts, 1 to 3)."""

from collections.abc import Sequence

from kafka_io.client.v07.link import Link07
from kafka_io.compression import CODECS, CODECS_07
from kafka_io.error_codes import check
from kafka_io.errors import TooLarge, Unsupported, Where, placing
from kafka_io.model import BrokerPartition
from kafka_io.records.build import message_set
from kafka_io.records.layout import HEADER_BYTES, LENGTH_BYTES
from kafka_io.v07.messages import LATEST_TIME, RANDOM_PARTITION, Offsets, OffsetsAnswer

MAX_MESSAGE_BYTES = 1_000_000  # max.message.size of a genuine broker: payload, or what the messages compress to


def checked_set(payloads: Sequence[bytes], codec: int, *, max_message_bytes: int, where: Where) -> bytes:
    """The payloads as one set, compressed by the codec of this number.

    Raises:
        TooLarge: a message above `max_message_bytes`, the one thing a broker drops without a word.
        Unsupported: a codec that 0.7 does not know.
    """
    if codec not in CODECS_07:
        raise Unsupported(f"0.7 does not know {CODECS[codec].name}", where)
    data = message_set(payloads, codec=codec)
    largest = len(data) - LENGTH_BYTES - HEADER_BYTES[1] if codec else max(map(len, payloads), default=0)
    if largest > max_message_bytes:
        raise TooLarge(f"a message of {largest} bytes is above max_message_bytes = {max_message_bytes}", where)
    return data


def confirm(link: Link07, topic: str, target: BrokerPartition) -> None:
    """Wait until the broker has taken in what was told over the link: it works in order, and is asked for an offset.

    Raises:
        NetworkError: it closed the connection, as it does on a set it refuses.
    """
    # Any partition will do, and every broker has the first; RANDOM_PARTITION is one for PRODUCE alone.
    asked = 0 if target.partition == RANDOM_PARTITION else target.partition
    where = Where(topic=topic, partition=str(target))
    with placing(where):
        answer = link.confirm(Offsets(topic, asked, LATEST_TIME, 1))
        assert isinstance(answer, OffsetsAnswer)
        check(answer.error, where)
