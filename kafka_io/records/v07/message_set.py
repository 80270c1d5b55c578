"""Message sets of 0.7 while they are read, and how far whole messages reach.

A fetch answer is cut by bytes, not by messages [kafka-0.7: Fetch]: an incomplete last message is left for the next
fetch and is never an error (fault R02). An invalid length is an error at once (faults R04, R26).
"""

from struct import Struct

from isal import isal_zlib

from kafka_io.compression import CODECS_07, BytesLike
from kafka_io.errors import NOWHERE, Corrupt, Unsupported, Where, WireError, error_context
from kafka_io.jit.scalars import read_only
from kafka_io.records.kernels import status_codes
from kafka_io.records.kernels import v07_messages as v07_kernels
from kafka_io.records.layout import CODEC_MASK, CRC_BYTES, HEADER_BYTES, LENGTH_BYTES

_LENGTH = Struct(">i")
_CRC = Struct(">I")


class MessageSetReader07:
    """A message set, read up to the byte `position`.

    The offset of the message there is `base + step * position`. In a compressed set `step` is 0, because all its
    messages have the offset of the outermost message. `first_row` is the row of the first message inside that outermost
    message.
    """

    __slots__ = ("array", "base", "first_row", "position", "step", "view")

    def __init__(self, data: BytesLike, *, base: int, step: int = 1, first_row: int = 0) -> None:
        self.view = memoryview(data)
        self.array = read_only(self.view)
        self.base = base
        self.step = step
        self.first_row = first_row
        self.position = 0

    @property
    def remaining(self) -> int:
        """Bytes that are not read yet."""
        return len(self.view) - self.position

    @property
    def offset(self) -> int:
        """Offset of the message at `position`."""
        return self.base + self.step * self.position

    def open_compressed(self, cap: int, *, row: int) -> "MessageSetReader07":
        """The set inside the compressed message at `position`.

        Args:
            cap: maximum size of the decompressed set in bytes.
            row: the row that its first message becomes.

        Raises:
            WireError: the message cannot be decompressed.
        """
        payload, crc = self._payload()
        if isal_zlib.crc32(payload) != crc:
            raise self.error(status_codes.BAD_CRC)
        number = self.view[self.position + LENGTH_BYTES + 1] & CODEC_MASK
        codec = CODECS_07.get(number)
        if codec is None:
            raise Unsupported(f"a message compressed with codec {number}{self._inside}")
        first_row = row if self.step else self.first_row
        inside = MessageSetReader07(codec.decompress(payload, cap), base=self.offset, step=0, first_row=first_row)
        self.position += LENGTH_BYTES + self._length
        return inside

    def error(self, status: int) -> WireError:
        """The error for the message at `position`, from the `status` of a kernel."""
        if status == status_codes.BAD_MAGIC:
            return Unsupported(f"a message of magic {self.view[self.position + LENGTH_BYTES]}{self._inside}")
        if self.remaining < LENGTH_BYTES:
            return Corrupt(f"a message cut in its length{self._inside}")
        if status == status_codes.BAD_LENGTH:
            return Corrupt(f"a message length of {self._length}{self._inside}")
        if status == status_codes.CUT:
            available = self.remaining - LENGTH_BYTES
            return Corrupt(f"a message of {self._length} bytes where {available} are left{self._inside}")
        payload, crc = self._payload()
        actual = isal_zlib.crc32(payload)
        return Corrupt(f"wrong CRC: the message says {crc:08x}, its payload has {actual:08x}{self._inside}")

    @property
    def _inside(self) -> str:
        """For errors: a compressed set has no offsets of its own."""
        return "" if self.step else f" at byte {self.position} of a compressed set"

    @property
    def _length(self) -> int:
        return int(_LENGTH.unpack_from(self.view, self.position)[0])

    def _payload(self) -> tuple[memoryview, int]:
        """The payload of the message at `position`, and its checksum. A kernel has checked the message's bounds."""
        start = self.position + LENGTH_BYTES
        payload = start + HEADER_BYTES[self.view[start]]
        return self.view[payload : start + self._length], _CRC.unpack_from(self.view, payload - CRC_BYTES)[0]


def first_length(data: BytesLike) -> int | None:
    """Size of the first message in bytes, as its length field says, including this field; None if it is incomplete."""
    if len(data) < LENGTH_BYTES:
        return None
    return LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "big", signed=True)


def whole_bytes(data: BytesLike, *, base: int, where: Where = NOWHERE) -> int:
    """Size of the whole messages at the front of `data`; compressed messages are not opened.

    Args:
        data: messages of 0.7; the last one may be incomplete.
        base: the offset of the first byte.
        where: the partition, for errors; they add the offset.

    Raises:
        Corrupt: an invalid length.
        Unsupported: a magic above 1.
    """
    return measure(data, base, where)[0]


def measure(data: BytesLike, base: int, where: Where) -> tuple[int, int]:
    """Length of the whole messages at the front of `data`, and the size of their largest payload, in bytes.

    Raises:
        Corrupt: a length that no message can have.
        Unsupported: a magic above 1.
    """
    messages = MessageSetReader07(data, base=base)
    status, messages.position, largest = v07_kernels.measure(messages.array)
    if status not in (status_codes.END, status_codes.CUT):
        with error_context(where.at_offset(messages.offset)):
            raise messages.error(status)
    return messages.position, largest
