"""A message set while it is read, and the sets compressed inside its messages."""

from dataclasses import dataclass
from struct import Struct

import numpy as np
from isal import isal_zlib

from kafka_io.compression import CODECS_07, Bytes
from kafka_io.errors import Corrupt, Unsupported, WireError
from kafka_io.records.kernels import outcomes
from kafka_io.records.layout import CODEC_MASK, CRC_BYTES, HEADER_BYTES, LENGTH_BYTES

_LENGTH = Struct(">i")
_CRC = Struct(">I")


class MessageSet:
    """Messages one after the other, read up to `at`.

    `base` and `step` give the offset of the message there, `base + step * at`. In a compressed set `step` is 0: all its
    messages have the offset of the outermost one around them, which became rows from `first` on.
    """

    __slots__ = ("array", "at", "base", "first", "step", "view")

    def __init__(self, data: Bytes, *, base: int, step: int = 1, first: int = 0) -> None:
        self.view = memoryview(data)
        # Always read-only, so that numba compiles each kernel once.
        self.array = np.frombuffer(self.view, np.uint8)
        self.array.flags.writeable = False
        self.base = base
        self.step = step
        self.first = first
        self.at = 0

    @property
    def left(self) -> int:
        """Bytes not yet read."""
        return len(self.view) - self.at

    @property
    def offset(self) -> int:
        """The offset of the message at `at`."""
        return self.base + self.step * self.at

    def take_compressed(self, cap: int, *, row: int) -> "MessageSet":
        """The set in the compressed message at `at`, of at most `cap` bytes; its first message becomes row `row`.

        Raises:
            WireError: the message cannot be opened.
        """
        message = _message(self.view, self.at)
        if isal_zlib.crc32(message.payload) != message.crc:
            raise self.fault(outcomes.BAD_CRC)
        codec = CODECS_07.get(message.codec)
        if codec is None:
            raise Unsupported(f"a message compressed with codec {message.codec}{self._inside()}")
        content = codec.decompress(message.payload, cap)
        first = row if self.step else self.first
        inside = MessageSet(content, base=self.offset, step=0, first=first)
        self.at += LENGTH_BYTES + message.length
        return inside

    def fault(self, status: int) -> WireError:
        """What a kernel's `status` says about the message at `at`."""
        return self._fault(status, self._inside())

    def _inside(self) -> str:
        # A compressed set has no offsets of its own.
        return "" if self.step else f" at byte {self.at} of a compressed set"

    def _fault(self, status: int, inside: str) -> WireError:
        if status == outcomes.BAD_MAGIC:
            return Unsupported(f"a message of magic {self.view[self.at + LENGTH_BYTES]}{inside}")
        if self.left < LENGTH_BYTES:
            return Corrupt(f"a message cut in its length{inside}")
        length = _length(self.view, self.at)
        if status == outcomes.BAD_LENGTH:
            return Corrupt(f"a message length of {length}{inside}")
        if status == outcomes.CUT:
            return Corrupt(f"a message of {length} bytes where {self.left - LENGTH_BYTES} are left{inside}")
        message = _message(self.view, self.at)
        found = isal_zlib.crc32(message.payload)
        return Corrupt(f"wrong CRC: the message says {message.crc:08x}, its payload has {found:08x}{inside}")


@dataclass(frozen=True, slots=True)
class _Message:
    """A message whose bounds a kernel has checked."""

    length: int
    codec: int
    crc: int
    payload: memoryview


def _length(view: memoryview, at: int) -> int:
    return int(_LENGTH.unpack_from(view, at)[0])


def _message(view: memoryview, at: int) -> _Message:
    length = _length(view, at)
    body = view[at + LENGTH_BYTES : at + LENGTH_BYTES + length]
    magic = body[0]
    header = HEADER_BYTES[magic]
    (crc,) = _CRC.unpack_from(body, header - CRC_BYTES)
    codec = body[1] & CODEC_MASK if magic else 0
    return _Message(length, codec, crc, body[header:])
