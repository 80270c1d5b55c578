"""The columns of message formats 0 to 2, the same for all of them.

Names and types are those of Spark's own Kafka source, but for the time, which stays as the wire has it: milliseconds,
-1 for none. `timestampType` is 0 for the time of creation, 1 for that of the append, and -1 in format 0, which has no
times: so an absent time and a time of -1 are told apart. Formats before 2 have no headers: their lists are empty.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_io.errors import TooLarge
from kafka_io.records.kernels import target, texts

HEADER = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", "UTC"), nullable=False),
        pa.field("timestampType", pa.int32(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("element", HEADER, nullable=False)), nullable=False),
    ]
)
COLUMNS = tuple(SCHEMA.names)

_NOT_ASCII = 0x80

_BITS = {
    "offset": target.OFFSET,
    "timestamp": target.TIMESTAMP,
    "timestampType": target.TIMESTAMP_TYPE,
    "key": target.KEY,
    "value": target.VALUE,
    "headers": target.HEADERS,
}


def wanted_bits(columns: Sequence[str]) -> int:
    """What kernels are told to fill.

    Raises:
        ValueError: no name, one that is no column, or twice the same.
    """
    unknown = [name for name in columns if name not in _BITS]
    if not columns or unknown or len(set(columns)) < len(columns):
        raise ValueError(f"columns must be some of {COLUMNS}, each once, not {tuple(columns)}")
    return sum(_BITS[name] for name in columns)


def header_keys(rows: int, ends: pa.Buffer, content: pa.Buffer, most: int) -> pa.Array:
    """The keys of headers as text.

    The protocol calls them strings, yet a client may write any bytes (R25), and text that is not UTF-8 would break the
    readers of a table. Such a key becomes U+FFFD and its bytes in hexadecimal. So does one that begins with U+FFFD by
    itself: what is read leads back to one key only.

    Raises:
        TooLarge: written so, the keys take more than `most` bytes.
    """
    keys = np.frombuffer(content, np.uint8)
    # No byte of U+FFFD is ASCII: among keys that are, none needs a second look.
    if len(keys) and keys.max() >= _NOT_ASCII:
        ends, content = _escaped(np.frombuffer(ends, np.int32), keys, most)
    return pa.Array.from_buffers(pa.string(), rows, [None, ends, content])


def _escaped(ends: npt.NDArray[np.int32], keys: npt.NDArray[np.uint8], most: int) -> tuple[pa.Buffer, pa.Buffer]:
    size = texts.escaped_bytes(keys, ends)
    if size > most:
        raise TooLarge(f"keys of headers that take {size} bytes as text, above max_decompressed_bytes = {most}")
    text, text_ends = np.empty(size, np.uint8), np.empty(len(ends), np.int32)
    texts.escape(keys, ends, text, text_ends)
    return pa.py_buffer(text_ends), pa.py_buffer(text)
