"""Messages and message sets of 0.7, for writing."""

from collections.abc import Iterable
from struct import Struct

from isal import isal_zlib

from kafka_io.compression import CODECS

# int32 length | magic | uint32 crc, and the same with attributes (facts, 2).
_MAGIC_0 = Struct(">iBI")
_MAGIC_1 = Struct(">iBBI")
_UNCOUNTED = 4


def message(payload: bytes, *, magic: int = 1, attributes: int = 0) -> bytes:
    """One message. Magic 0 has no attributes to carry.

    Raises:
        ValueError: another magic, or attributes on magic 0.
    """
    crc = isal_zlib.crc32(payload)
    if magic == 1:
        return _MAGIC_1.pack(_MAGIC_1.size - _UNCOUNTED + len(payload), magic, attributes, crc) + payload
    if magic == 0 and attributes == 0:
        return _MAGIC_0.pack(_MAGIC_0.size - _UNCOUNTED + len(payload), magic, crc) + payload
    raise ValueError(f"no message has magic {magic} and attributes {attributes}")


def message_set(payloads: Iterable[bytes], *, codec: int = 0, magic: int = 1) -> bytes:
    """A message per payload; with a codec, all of them compressed in one message of magic 1."""
    plain = b"".join(message(payload, magic=magic) for payload in payloads)
    return message(CODECS[codec].compress(plain), attributes=codec) if codec else plain
