"""Reads and writes numbers and strings of Kafka's protocol, big-endian. Only strings are copied."""

import struct
from collections.abc import Callable
from struct import Struct
from uuid import UUID

from kafka_io.errors import Corrupt, Truncated

Octets = bytes | bytearray | memoryview

_INT8 = Struct(">b")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_UUID_BYTES = 16
_VARINT_BITS = 32


def no_deadline() -> None:
    """The `check_time` of a reader without a deadline."""


class WireReader:
    """Reads fields of `data` from front to back. An incomplete field raises Truncated.

    `check_time` is called before each array, and raises an error when there is no time left to read it (fault H02).
    """

    def __init__(self, data: Octets, check_time: Callable[[], object] = no_deadline) -> None:
        self._data = memoryview(data)
        self._size = len(self._data)
        self._position = 0
        self._check_time = check_time

    @property
    def unread_bytes(self) -> int:
        """The number of bytes that are not read yet."""
        return self._size - self._position

    def _take(self, layout: Struct) -> int:
        value: int
        try:
            (value,) = layout.unpack_from(self._data, self._position)
        except struct.error:
            raise self._truncated(layout.size) from None
        self._position += layout.size
        return value

    def _truncated(self, length: int) -> Truncated:
        return Truncated(f"{length} bytes needed at byte {self._position}, {self.unread_bytes} left")

    def int8(self) -> int:
        """A signed 8-bit number."""
        return self._take(_INT8)

    def boolean(self) -> bool:
        """One byte; every value except 0 is true, as the protocol says."""
        return self._take(_INT8) != 0

    def int16(self) -> int:
        """A signed 16-bit number."""
        return self._take(_INT16)

    def int32(self) -> int:
        """A signed 32-bit number."""
        return self._take(_INT32)

    def int64(self) -> int:
        """A signed 64-bit number."""
        return self._take(_INT64)

    def uvarint(self) -> int:
        """An unsigned number of up to 32 bits, seven bits per byte, the lowest first (KIP-482).

        Raises:
            Corrupt: the number has more than 32 bits.
        """
        value = self._take(_INT8)  # most numbers are small
        if value >= 0:
            return value
        value &= 0x7F
        for shift in range(7, _VARINT_BITS, 7):
            byte = self._take(_INT8)  # signed: below 0 if its highest bit is set, which means that more bytes follow
            value |= (byte & 0x7F) << shift
            if byte >= 0:
                if value >> _VARINT_BITS:
                    break
                return value
        raise Corrupt("a varint of more than 32 bits")

    def uuid(self) -> UUID:
        """16 bytes."""
        return UUID(bytes=bytes(self.view(_UUID_BYTES)))

    def inside(self, length: int) -> "WireReader":
        """A reader of the next `length` bytes, with the same deadline."""
        return WireReader(self.view(length), self._check_time)

    def bounded(self, count: int, item_bytes: int, max_items: int) -> int:
        """Check a count of items, and return it (faults W09, H02).

        Otherwise a few corrupt bytes could ask for an array of two billion items.

        Raises:
            Corrupt: the count is above `max_items`, or the bytes that are left cannot contain so many items of at least
                `item_bytes` each.
        """
        self._check_time()
        if count < 0 or count * item_bytes > self.unread_bytes:
            raise Corrupt(f"a count of {count} with {self.unread_bytes} bytes left")
        if count > max_items:
            raise Corrupt(f"a count of {count} is above the maximum of {max_items}")
        return count

    def text(self, length: int) -> str:
        """`length` bytes of UTF-8."""
        if length < 0:
            raise Corrupt(f"a string length of {length}")
        try:
            return str(self.view(length), "utf-8")
        except UnicodeDecodeError as error:
            raise Corrupt("a string that is not UTF-8") from error

    def view(self, length: int) -> memoryview:
        """The next `length` bytes, not copied."""
        if length < 0:
            raise Corrupt(f"a length of {length}")
        start, end = self._position, self._position + length
        if end > self._size:
            raise self._truncated(length)
        self._position = end
        return self._data[start:end]

    def unread(self) -> memoryview:
        """All bytes that are not read yet, not copied."""
        return self.view(self.unread_bytes)

    def end(self) -> None:
        """Check that all bytes were read (fault W12)."""
        if self.unread_bytes:
            raise Corrupt(f"{self.unread_bytes} bytes left over after the last field")


int8: Callable[[int], bytes] = _INT8.pack
"""A number in one byte."""
int16: Callable[[int], bytes] = _INT16.pack
"""A number in two bytes."""
int32: Callable[[int], bytes] = _INT32.pack
"""A number in four bytes."""
int64: Callable[[int], bytes] = _INT64.pack
"""A number in eight bytes."""


def boolean(value: bool) -> bytes:
    """`value` in one byte."""
    return b"\x01" if value else b"\x00"


def uvarint(value: int) -> bytes:
    """`value` in one to five bytes.

    Raises:
        ValueError: it is negative or has more than 32 bits.
    """
    if value < 0 or value >> _VARINT_BITS:
        raise ValueError(f"{value} has no place in an unsigned varint of 32 bits")
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def uuid(value: UUID) -> bytes:
    """`value` in 16 bytes."""
    return value.bytes
