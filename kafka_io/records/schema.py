"""The Arrow schemas: one for message formats 0 to 2, one for 0.7.

Names and types are those of Spark's Kafka source, except `timestamp`: it stays as in the protocol, in milliseconds and
-1 for none. `timestampType` is 0 for CreateTime, 1 for LogAppendTime and -1 in format 0, which has no timestamps. So a
missing timestamp and a timestamp of -1 differ. Formats before 2 have no headers: their lists are empty.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kafka_io.errors import TooLarge
from kafka_io.records.kernels import status_codes, utf8

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

# 0.7 has neither keys nor timestamps. `offset` is the position of the outermost message; `inner` is the index of a
# message inside a compressed one [kafka-0.7: Compression], and 0 for a plain message.
SCHEMA_07 = pa.schema([("offset", pa.int64()), ("inner", pa.int32()), ("value", pa.binary())])

_NOT_ASCII = 0x80


def select_columns(names: Sequence[str]) -> pa.Schema:
    """The fields of SCHEMA with these names, in this order.

    Raises:
        ValueError: no name, a name that SCHEMA does not have, or a name given twice.
    """
    if not names or not set(names) <= set(COLUMNS) or len(set(names)) < len(names):
        raise ValueError(f"columns must be some of {COLUMNS}, each once, not {tuple(names)}")
    return pa.schema([SCHEMA.field(name) for name in names])


def header_keys(rows: int, ends: pa.Buffer, content: pa.Buffer, max_bytes: int) -> pa.Array:
    """Header keys as text.

    The protocol calls them strings, but a client may write any bytes (fault R25), and text that is not UTF-8 would
    break the readers of a table. Such a key becomes U+FFFD and its bytes in hexadecimal. So does a key that begins with
    U+FFFD: otherwise two different keys could give the same text.

    Raises:
        TooLarge: the escaped keys take more than `max_bytes`.
    """
    keys = np.frombuffer(content, np.uint8)
    # U+FFFD has no ASCII byte, so keys of ASCII bytes alone need no escaping.
    if len(keys) and keys.max() >= _NOT_ASCII:
        # The largest possible size; pages that are never written cost nothing.
        texts = np.empty(min(max_bytes, len(utf8.MARK) * rows + 2 * len(keys)), np.uint8)
        text_ends = np.empty(rows + 1, np.int32)
        if utf8.escape(keys, np.frombuffer(ends, np.int32), texts, text_ends) != status_codes.END:
            raise TooLarge(f"header keys take more bytes as text than max_decompressed_bytes = {max_bytes}")
        ends, content = pa.py_buffer(text_ends), pa.py_buffer(texts)
    return pa.Array.from_buffers(pa.string(), rows, [None, ends, content])
