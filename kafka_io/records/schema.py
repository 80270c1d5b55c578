"""The columns of message formats 0 to 2, the same for all of them.

Names and types are those of Spark's own Kafka source, but for the time, which stays as the wire has it: milliseconds,
-1 for none. `timestampType` is 0 for the time of creation, 1 for that of the append, and -1 in format 0, which has no
times: so an absent time and a time of -1 are told apart. Formats before 2 have no headers: their lists are empty.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.records.kernels import target

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

# Not ASCII, so that among keys that are, none needs a second look.
ESCAPE = "\ufffd"
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


def header_keys(rows: int, ends: pa.Buffer, content: pa.Buffer) -> pa.Array:
    """The keys of headers as text.

    The protocol calls them strings, yet a client may write any bytes (R25), and text that is not UTF-8 would break the
    readers of a table. Such a key becomes ESCAPE and its bytes in hexadecimal. So does one that begins with ESCAPE by
    itself: what is read leads back to one key only.
    """
    text = pa.Array.from_buffers(pa.string(), rows, [None, ends, content])
    if not content.size or np.frombuffer(content, np.uint8).max() < _NOT_ASCII:
        return text
    keys = pa.Array.from_buffers(pa.binary(), rows, [None, ends, content])
    try:
        keys.cast(pa.string())
        plain = not pc.any(pc.starts_with(text, ESCAPE)).as_py()
    except pa.ArrowInvalid:
        plain = False
    return text if plain else pa.array(map(_text, keys.to_pylist()), pa.string())


def _text(key: bytes) -> str:
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = ESCAPE
    return ESCAPE + key.hex() if text.startswith(ESCAPE) else text
