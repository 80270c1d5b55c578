"""Conversion of record batches to messages of format 0 or 1, for clients that do not know batches.

A genuine broker converts them in the same way. These formats have no headers and no transaction markers, and format 0
has no timestamps, so these are left out.
"""

from collections.abc import Iterator

import pyarrow as pa

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError
from kafka_io.records.build import Record, log_messages
from kafka_io.records.decoder import decode
from kafka_io.records.record_set import RequestedOffsets
from kafka_io.testing.modern.log.header import BatchHeader, whole_batches
from kafka_io.testing.modern.validation import ZSTD

_COLUMNS = ("offset", "timestamp", "key", "value")


def convert_to_messages(data: bytes, *, magic: int, start: int) -> bytes:
    """The whole batches of `data` as messages, compressed with the same codecs.

    Uncompressed messages before the offset `start` are left out. A compressed message has all records of its batch.

    Raises:
        BrokerError: a batch is compressed with zstd, which these formats do not have (code 76).
    """
    return b"".join(_convert_batches(data, magic=magic, start=start))


def _convert_batches(data: bytes, *, magic: int, start: int) -> Iterator[bytes]:
    for position, header in whole_batches(data):
        if header.codec == ZSTD:
            raise BrokerError("zstd needs Fetch v4 or later", code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if header.is_control:
            continue
        first_offset = header.base_offset if header.codec else max(header.base_offset, start)
        if records := list(_decode_batch(data[position : position + header.size], header, first_offset)):
            yield log_messages(records, magic=magic, codec=header.codec)


def _decode_batch(batch: bytes, header: BatchHeader, first_offset: int) -> Iterator[Record]:
    if first_offset >= header.next_offset:
        return
    for decoded in decode(batch, RequestedOffsets(start=first_offset), columns=_COLUMNS):
        columns = {name: decoded.batch.column(name) for name in _COLUMNS}
        columns["timestamp"] = columns["timestamp"].cast(pa.int64())
        for offset, timestamp, key, value in zip(*(column.to_pylist() for column in columns.values()), strict=True):
            yield Record(offset=offset, timestamp=timestamp, key=key, value=value)
