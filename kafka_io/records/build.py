"""Writes messages, message sets and record batches of all formats. `layout.py` has their layouts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from struct import Struct

from isal import isal_zlib

from kafka_io.compression import CODECS, MESSAGE_CODECS
from kafka_io.records.crc32c import crc32c
from kafka_io.records.layout import APPEND_TIME, BATCH_MAGIC

_CRC = Struct(">I")
_LENGTH = Struct(">i")
_TIMESTAMP = Struct(">q")
# From 0.8 on: int64 offset | int32 length, followed by a message or the rest of a record batch.
_ENTRY = Struct(">qi")
_BATCH_HEAD = Struct(">iBI")
_BATCH = Struct(">hiqqqhii")
_NO_LEADER_EPOCH = -1
NO_PRODUCER = (-1, -1, -1)


def message(payload: bytes, *, magic: int = 1, attributes: int = 0) -> bytes:
    """One message of 0.7. Magic 0 has no attributes.

    Raises:
        ValueError: another magic, or attributes with magic 0.
    """
    if magic not in (0, 1) or (attributes and not magic):
        raise ValueError(f"no message has magic {magic} and attributes {attributes}")
    head = (bytes((magic, attributes)) if magic else b"\0") + _CRC.pack(isal_zlib.crc32(payload))
    return _LENGTH.pack(len(head) + len(payload)) + head + payload


def message_set(payloads: Iterable[bytes], *, codec: int = 0, magic: int = 1) -> bytes:
    """A message of 0.7 for each payload. With a codec, all of them are compressed in one message of magic 1."""
    plain = b"".join(message(payload, magic=magic) for payload in payloads)
    return message(CODECS[codec].compress(plain), attributes=codec) if codec else plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record to write. `timestamp` is in milliseconds, -1 for none. Only record batches have headers.

    >>> len(record_batch([Record(offset=7, key=b"k", value=b"v", headers=((b"h", None),))]))
    73
    """

    offset: int = 0
    timestamp: int = -1
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()


def log_messages(records: Sequence[Record], *, magic: int, codec: int = 0, append_time: int | None = None) -> bytes:
    """The records as messages of format 0 or 1. With a codec, all of them are compressed in one message.

    Args:
        records: at least one; their offsets must grow.
        magic: 0, which has no timestamps, or 1.
        codec: 0 to 3. In format 0, lz4 has the wrong header checksum that Kafka wrote then (KAFKA-3160).
        append_time: the broker's timestamp for all records (LogAppendTime); only format 1 can hold it.

    Raises:
        ValueError: another magic.
    """
    if magic not in (0, 1):
        raise ValueError(f"no message of a log has magic {magic}")
    appended = 0 if append_time is None else APPEND_TIME
    if not codec:
        if append_time is not None:
            records = [replace(record, timestamp=append_time) for record in records]
        return b"".join(_log_message(record, magic, appended) for record in records)
    # In format 1 the inner offsets begin at 0: the broker assigns offsets by changing the outer message alone, and need
    # not compress the set again.
    base = records[0].offset if magic else 0
    inside = b"".join(_log_message(replace(record, offset=record.offset - base), magic, 0) for record in records)
    outer = Record(
        offset=records[-1].offset,
        timestamp=max(record.timestamp for record in records) if append_time is None else append_time,
        value=MESSAGE_CODECS[magic][codec].compress(inside),
    )
    return _log_message(outer, magic, appended | codec)


def _log_message(record: Record, magic: int, attributes: int) -> bytes:
    timestamp = _TIMESTAMP.pack(record.timestamp) if magic else b""
    body = bytes((magic, attributes)) + timestamp + _sized(record.key) + _sized(record.value)
    return _ENTRY.pack(record.offset, _CRC.size + len(body)) + _CRC.pack(isal_zlib.crc32(body)) + body


def _sized(content: bytes | None) -> bytes:
    return _LENGTH.pack(-1) if content is None else _LENGTH.pack(len(content)) + content


def record_batch(
    records: Sequence[Record],
    *,
    codec: int = 0,
    attributes: int = 0,
    append_time: int | None = None,
    span: tuple[int, int] | None = None,
    producer: tuple[int, int, int] = NO_PRODUCER,
) -> bytes:
    """The records as one record batch.

    Args:
        records: their offsets must grow.
        codec: 0 to 4.
        attributes: further attribute bits, see layout.py.
        append_time: the broker's timestamp for all records (LogAppendTime).
        span: first and last offset of a compacted batch, which may have no record at either; needed without records.
        producer: producer id, producer epoch, and sequence number of the first record.
    """
    base, last = span or (records[0].offset, records[-1].offset)
    base_time = records[0].timestamp if records else -1
    content = b"".join(_record(record, base, base_time) for record in records)
    max_time = max((record.timestamp for record in records), default=-1) if append_time is None else append_time
    attributes |= codec | (0 if append_time is None else APPEND_TIME)
    body = _BATCH.pack(attributes, last - base, base_time, max_time, *producer, len(records))
    body += CODECS[codec].compress(content) if content else content
    entry = _ENTRY.pack(base, _BATCH_HEAD.size + len(body))
    return entry + _BATCH_HEAD.pack(_NO_LEADER_EPOCH, BATCH_MAGIC, crc32c(body)) + body


def _record(record: Record, base: int, base_time: int) -> bytes:
    parts = [
        b"\0",
        # Wrapped to an int64 as in Java: the difference of two timestamps can be larger.
        _varint((record.timestamp - base_time + 2**63) % 2**64 - 2**63),
        _varint(record.offset - base),
        _counted(record.key),
        _counted(record.value),
        _varint(len(record.headers)),
        *(part for key, value in record.headers for part in (_counted(key), _counted(value))),
    ]
    content = b"".join(parts)
    return _varint(len(content)) + content


def _counted(content: bytes | None) -> bytes:
    return _varint(-1) if content is None else _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """A zigzag varint: seven bits per byte, the lowest first. See `kafka_io.jit.scalars.varint`."""
    remaining_bits = 2 * number if number >= 0 else -2 * number - 1
    out = bytearray()
    while remaining_bits > 0x7F:
        out.append(remaining_bits & 0x7F | 0x80)
        remaining_bits >>= 7
    out.append(remaining_bits)
    return bytes(out)
