"""Record batches for clients that do not know them: as messages of format 0 or 1, like a genuine broker's answers.

What those formats cannot hold is left out: headers, the markers of transactions, and in format 0 the times.
"""

from collections.abc import Iterator

import pyarrow as pa

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.incoming import ZSTD
from kafka_io.broker.modern.log.header import BatchHeader, whole_batches
from kafka_io.errors import BrokerError
from kafka_io.records.build import Record, log_messages
from kafka_io.records.entries import Asked
from kafka_io.records.logs import decode

_COLUMNS = ("offset", "timestamp", "key", "value")


def as_messages(data: bytes, *, magic: int, at: int) -> bytes:
    """The whole batches of `data` as messages, each compressed as it was.

    Plain messages before offset `at` are left out; a compressed one holds what its batch did.

    Raises:
        BrokerError: a batch is compressed with zstd, which no message is (code 76).
    """
    return b"".join(_converted(data, magic=magic, at=at))


def _converted(data: bytes, *, magic: int, at: int) -> Iterator[bytes]:
    for place, header in whole_batches(data):
        if header.codec == ZSTD:
            raise BrokerError("zstd needs Fetch v4 or later", code=Code.UNSUPPORTED_COMPRESSION_TYPE)
        if header.is_control:
            continue
        first = header.base if header.codec else max(header.base, at)
        if records := list(_records(data[place : place + header.size], header, first)):
            yield log_messages(records, magic=magic, codec=header.codec)


def _records(batch: bytes, header: BatchHeader, first: int) -> Iterator[Record]:
    if first >= header.next:
        return
    for decoded in decode(batch, Asked(at=first), columns=_COLUMNS):
        columns = decoded.batch
        times = columns.column("timestamp").cast(pa.int64())
        for offset, time, key, value in zip(
            *(column.to_pylist() for column in (columns.column("offset"), times, *columns.columns[2:])), strict=True
        ):
            yield Record(offset=offset, timestamp=time, key=key, value=value)
