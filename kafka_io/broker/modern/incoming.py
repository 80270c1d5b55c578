"""What producers send, checked before it may enter a log. All that is stored are record batches.

Messages of formats 0 and 1 become a batch, as a genuine broker converts them for a log of the newer format.
"""

from dataclasses import dataclass

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.config import ModernBrokerConfig
from kafka_io.broker.modern.log.header import NO_PRODUCER_ID, BatchHeader, stamp
from kafka_io.broker.modern.old_messages import read_message_set
from kafka_io.compression import CODECS
from kafka_io.errors import BrokerError, TooLarge, WireError
from kafka_io.records.build import record_batch
from kafka_io.records.columns import Limits
from kafka_io.records.entries import Asked
from kafka_io.records.logs import decode

ZSTD = 4
_BATCHES_SINCE = 3  # versions of Produce
_ZSTD_SINCE = 7


@dataclass(frozen=True, slots=True)
class Incoming:
    """A batch that is fit for a log; its bytes are stamped with their place there."""

    batch: bytearray | memoryview
    header: BatchHeader


def incoming(records: memoryview, version: int, config: ModernBrokerConfig) -> Incoming:
    """What a Produce request of this version brings for one partition.

    Raises:
        BrokerError: with the code to answer, for all that is not right.
    """
    if len(records) > config.max_message_bytes:
        raise BrokerError(
            f"{len(records)} bytes of records, max_message_bytes is {config.max_message_bytes}",
            code=Code.MESSAGE_TOO_LARGE,
        )
    try:
        if version < _BATCHES_SINCE:
            return _converted(records, config)
        return _checked(records, version, config)
    except TooLarge as error:
        raise BrokerError(error.reason, code=Code.MESSAGE_TOO_LARGE) from error
    except WireError as error:
        raise BrokerError(error.reason, code=Code.CORRUPT_MESSAGE) from error


def _converted(records: memoryview, config: ModernBrokerConfig) -> Incoming:
    read, codec = read_message_set(records, cap=config.max_decompressed_bytes)
    if not read:
        raise BrokerError("no message to store", code=Code.INVALID_RECORD)
    batch = bytearray(record_batch(read, codec=codec))
    return Incoming(batch, BatchHeader.parse(batch))


def _checked(batch: memoryview, version: int, config: ModernBrokerConfig) -> Incoming:
    header = BatchHeader.parse(batch)
    _check_header(header, len(batch), version)
    stamp(batch, 0)  # a producer may write any base: it means nothing
    limits = Limits(max_decompressed_bytes=config.max_decompressed_bytes)
    decoded = decode(batch, Asked(at=0), columns=("offset",), limits=limits)
    if sum(one.batch.num_rows for one in decoded) != header.count:
        raise BrokerError("records without growing offsets", code=Code.INVALID_RECORD)
    return Incoming(batch, header)


def _check_header(header: BatchHeader, size: int, version: int) -> None:
    """Raises BrokerError for what a producer may not send."""
    if header.codec not in CODECS and header.codec:
        raise BrokerError(f"codec {header.codec}", code=Code.UNSUPPORTED_COMPRESSION_TYPE)
    if header.codec == ZSTD and version < _ZSTD_SINCE:
        raise BrokerError("zstd needs Produce v7 (KIP-110)", code=Code.UNSUPPORTED_COMPRESSION_TYPE)
    if header.size != size:
        raise BrokerError("not exactly one batch for a partition", code=Code.INVALID_RECORD)
    if header.is_control:
        raise BrokerError("the markers of transactions are the broker's to write", code=Code.INVALID_RECORD)
    if header.count != header.last_delta + 1:
        raise BrokerError(f"{header.count} records for {header.last_delta + 1} offsets", code=Code.INVALID_RECORD)
    if header.producer_id != NO_PRODUCER_ID and (header.sequence < 0 or header.producer_epoch < 0):
        raise BrokerError("a producer's id without epoch or sequence number", code=Code.INVALID_RECORD)
