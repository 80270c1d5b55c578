"""Messages of formats 0 and 1 of a fetch answer to rows, including those inside a compressed message.

The outer message has the offset of the last inner one. In format 0 inner messages have absolute offsets; in format 1
their offsets are relative and begin at 0. With LogAppendTime, format 1 has the time only in the outer message
[kafka-0.8: Message sets].
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from isal import isal_zlib

from kafka_io.compression import MESSAGE_CODECS, BytesLike
from kafka_io.errors import Corrupt, Unsupported, error_context
from kafka_io.jit.scalars import ByteArray, read_only
from kafka_io.records.column_builder import ColumnBuilder
from kafka_io.records.decoded_batch import DecodeLimits
from kafka_io.records.kernels import legacy_messages as kernels
from kafka_io.records.kernels import status_codes
from kafka_io.records.kernels.legacy_messages import ANY_MAGIC, NO_TIMESTAMP
from kafka_io.records.layout import (
    APPEND_TIME,
    ENTRY_BYTES,
    MAGIC_AT,
    MESSAGE_KEY_AT,
    MESSAGE_TIMESTAMP_AT,
    MIN_MESSAGE_BYTES,
    MODERN_CODEC_MASK,
)
from kafka_io.records.record_set import REASONS, RecordSet

# offset | length | crc | magic | attributes
_HEAD = Struct(">qiIBB")
_INT64 = Struct(">q")
_LENGTH = Struct(">i")
_UNBOUNDED = 2**63 - 1
# Magic, shift of the offsets, and append time of messages that are not inside another message.
_OUTER = (ANY_MAGIC, 0, NO_TIMESTAMP)


def read_messages(record_set: RecordSet, columns: ColumnBuilder, limits: DecodeLimits) -> Iterator[None]:
    """Decode messages until an entry of another format.

    Yields after whole outer messages, so that the caller can take the rows.
    """
    status = status_codes.PAUSED
    while status in (status_codes.PAUSED, status_codes.WRAPPER) and not record_set.ended:
        # Compressed messages often follow one another. is_compressed() is a cheaper call than decode(), which takes
        # all column arrays and would stop at once.
        if status == status_codes.PAUSED:
            status = _decode_plain(record_set, columns, limits.batch_bytes)
        if status == status_codes.WRAPPER:
            _decode_compressed(record_set, columns, limits.max_decompressed_bytes)
            is_next = kernels.is_compressed(
                record_set.array, record_set.position, record_set.min_end, record_set.requested.high_watermark - 1
            )
            status = status_codes.WRAPPER if is_next else status_codes.PAUSED
        yield


def _decode_plain(record_set: RecordSet, columns: ColumnBuilder, max_bytes: int) -> int:
    """Decode messages up to the first compressed one; returns why the kernel stopped."""
    requested, floor = record_set.requested, record_set.min_end
    remaining = len(record_set.view) - record_set.position
    columns.reserve(remaining // MIN_MESSAGE_BYTES[0], remaining)
    offsets, rows = (floor, requested.high_watermark - 1), (columns.wanted, requested.start, requested.stop)
    start, rows_before = record_set.position, columns.rows
    status, position, last = kernels.decode(
        record_set.array, record_set.position, *_OUTER, *offsets, *rows, requested.stop, max_bytes, columns.arrays
    )
    if last > floor:
        decoded = _DecodedMessages(record_set.array, start, position, 0, columns.rows - rows_before)
        _count_gaps(record_set, decoded, last)
    if status == status_codes.PAST:
        record_set.skip_rest()
    record_set.stop_at(position, status)
    return status


def _decode_compressed(record_set: RecordSet, columns: ColumnBuilder, cap: int) -> None:
    """Decode the messages inside the compressed message at the current position."""
    entry = record_set.view[record_set.position :]
    outer_offset, length, crc, magic, attributes = _HEAD.unpack_from(entry)
    size = ENTRY_BYTES + length
    is_appended = magic and attributes & APPEND_TIME
    with error_context(record_set.where.at_offset(record_set.next_offset)):
        content = read_only(_decompressed(entry[MAGIC_AT:size], crc, cap))
        status, _, last = kernels.measure(content, 0)
        if status == status_codes.END:
            if not 0 <= last <= outer_offset:
                raise Corrupt(f"a compressed message whose last offset is {last}")
            columns.reserve(len(content) // MIN_MESSAGE_BYTES[0], len(content))
            append_time = _INT64.unpack_from(entry, MESSAGE_TIMESTAMP_AT)[0] if is_appended else NO_TIMESTAMP
            inner = (magic, outer_offset - last if magic else 0, append_time)
            offsets = (record_set.last_offset, outer_offset)
            rows = (columns.wanted, record_set.requested.start, record_set.requested.stop)
            # A message set is always decoded whole; rows after the requested stop are dropped.
            end_offset = max_bytes = _UNBOUNDED
            rows_before = columns.rows
            status, _, _ = kernels.decode(content, 0, *inner, *offsets, *rows, end_offset, max_bytes, columns.arrays)
        if status != status_codes.END:
            raise Corrupt(f"inside a compressed message: {REASONS[status]}")
        decoded = _DecodedMessages(content, 0, len(content), inner[1], columns.rows - rows_before)
        _count_gaps(record_set, decoded, outer_offset)
    record_set.position += size


class _DecodedMessages(NamedTuple):
    """Messages at [position, end) of `data` that were decoded to so many rows; `shift` is added to their offsets."""

    data: ByteArray
    position: int
    end: int
    shift: int
    rows: int


def _count_gaps(record_set: RecordSet, decoded: _DecodedMessages, last: int) -> None:
    """Record that messages up to offset `last` are decoded, and count the offsets without a message.

    Raises:
        Corrupt: there are more or fewer rows than messages.
    """
    start, stop = record_set.next_offset, min(last + 1, record_set.requested.stop)
    record_set.advance_to(last)
    if decoded.rows == stop - start:  # the usual case: each offset has a row
        return
    messages, first_start, last_stop = kernels.find_holes(*decoded[:4], start, stop)
    if messages != decoded.rows:
        raise Corrupt(
            f"{decoded.rows} records were decoded from {messages} messages", record_set.where.at_offset(start)
        )
    record_set.gaps.add_holes(first_start, last_stop, stop - start - messages)


def _decompressed(message: memoryview, crc: int, cap: int) -> BytesLike:
    """The set inside a compressed message. `message` is what its checksum covers: all from the magic on.

    Raises:
        WireError: the checksum, codec or compressed data is invalid.
    """
    actual = isal_zlib.crc32(message)
    if actual != crc:
        raise Corrupt(f"wrong CRC: the message says {crc:08x}, its content has {actual:08x}")
    magic, number = message[0], message[1] & MODERN_CODEC_MASK
    codec = MESSAGE_CODECS[magic].get(number)
    if codec is None:
        raise Unsupported(f"a message of magic {magic} compressed with codec {number}")
    key = MESSAGE_KEY_AT[magic] - MAGIC_AT + _LENGTH.size
    (key_size,) = _LENGTH.unpack_from(message, key - _LENGTH.size)
    value = key + max(key_size, 0) + _LENGTH.size
    if key_size < -1 or value > len(message):
        raise Corrupt(f"a key of {key_size} bytes in a compressed message of {MAGIC_AT + len(message)}")
    (value_size,) = _LENGTH.unpack_from(message, value - _LENGTH.size)
    if value_size != len(message) - value:
        raise Corrupt(f"a set of {value_size} bytes in a compressed message that has {len(message) - value} for it")
    return codec.decompress(message[value:], cap)
