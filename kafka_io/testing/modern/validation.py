"""The check of records that producers send, before they enter a log. A log stores record batches only.

Messages of formats 0 and 1 are converted to a batch, as a genuine broker does for a log of the newer format.
"""

from kafka_io.compression import CODECS
from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError, TooLarge, WireError
from kafka_io.records.build import record_batch
from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.records.decoder import decode
from kafka_io.records.record_set import RequestedOffsets
from kafka_io.testing.modern.config import ModernBrokerConfig
from kafka_io.testing.modern.log.header import NO_PRODUCER_ID, BatchHeader, stamp
from kafka_io.testing.modern.old_formats import read_message_set

ZSTD = 4
# Versions of the Produce request.
_BATCHES_SINCE = 3
_ZSTD_SINCE = 7  # KIP-110


def validate_produced(records: memoryview, version: int, config: ModernBrokerConfig) -> bytearray | memoryview:
    """The records of one partition in a Produce request of this version, as a valid batch with base offset 0.

    Raises:
        BrokerError: the records are invalid; the error has the code of the answer.
    """
    if len(records) > config.max_message_bytes:
        reason = f"{len(records)} bytes of records, max_message_bytes is {config.max_message_bytes}"
        raise BrokerError(reason, code=ErrorCode.MESSAGE_TOO_LARGE)
    try:
        if version < _BATCHES_SINCE:
            return _convert_messages(records, config)
        return _validate_batch(records, version, config)
    except TooLarge as error:
        raise BrokerError(error.reason, code=ErrorCode.MESSAGE_TOO_LARGE) from error
    except WireError as error:
        raise BrokerError(error.reason, code=ErrorCode.CORRUPT_MESSAGE) from error


def _convert_messages(message_set: memoryview, config: ModernBrokerConfig) -> bytearray:
    records, codec = read_message_set(message_set, max_decompressed_bytes=config.max_decompressed_bytes)
    if not records:
        raise BrokerError("the message set is empty", code=ErrorCode.INVALID_RECORD)
    return bytearray(record_batch(records, codec=codec))


def _validate_batch(batch: memoryview, version: int, config: ModernBrokerConfig) -> memoryview:
    header = BatchHeader.parse(batch)
    _check_header(header, len(batch), version)
    # The base offset of a producer has no meaning. The decoder counts from the requested offset on, so it must be 0.
    stamp(batch, 0)
    limits = DecodeLimits(max_decompressed_bytes=config.max_decompressed_bytes)
    decoded = decode(batch, RequestedOffsets(start=0), columns=("offset",), limits=limits)
    if sum(part.batch.num_rows for part in decoded) != header.record_count:
        raise BrokerError("the offsets of the records do not increase", code=ErrorCode.INVALID_RECORD)
    return batch


def _check_header(header: BatchHeader, size: int, version: int) -> None:
    """Check that a producer may send this batch.

    Raises:
        BrokerError: it may not.
    """
    codec, count, offsets = header.codec, header.record_count, header.offset_count
    if codec and codec not in CODECS:
        raise BrokerError(f"there is no codec {codec}", code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if codec == ZSTD and version < _ZSTD_SINCE:
        raise BrokerError("zstd needs Produce v7 (KIP-110)", code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    lacks_sequence = header.base_sequence < 0 or header.producer_epoch < 0
    faults = {
        "each partition needs exactly one batch": header.size != size,
        "only the broker writes transaction markers": header.is_control,
        f"the batch has {count} records for {offsets} offsets": count != offsets,
        "the batch has a producer id, but no epoch or no sequence number": (
            header.producer_id != NO_PRODUCER_ID and lacks_sequence
        ),
    }
    for reason, is_fault in faults.items():
        if is_fault:
            raise BrokerError(reason, code=ErrorCode.INVALID_RECORD)
