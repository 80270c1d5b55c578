"""Numbers and strings of Kafka's wire, big-endian, over any buffer. Nothing is copied but strings."""

from struct import Struct

from kafka_io.errors import Corrupt, Truncated

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")


class Reader:
    """Takes fields off the front of `data`; a field that is not all there is Truncated."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._data = memoryview(data)
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes not yet taken."""
        return len(self._data) - self._at

    def _take(self, layout: Struct) -> int:
        if self.left < layout.size:
            raise Truncated(f"{layout.size} bytes needed at byte {self._at}, {self.left} left")
        (value,) = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return int(value)

    def int16(self) -> int:
        """A signed 16-bit number."""
        return self._take(_INT16)

    def int32(self) -> int:
        """A signed 32-bit number."""
        return self._take(_INT32)

    def int64(self) -> int:
        """A signed 64-bit number."""
        return self._take(_INT64)

    def count(self, each: int) -> int:
        """An int32 count of items of at least `each` bytes: never more than the bytes left can hold (W09)."""
        return self._bounded(self.int32(), each)

    def short_count(self, each: int) -> int:
        """Like `count`, of 16 bits."""
        return self._bounded(self.int16(), each)

    def _bounded(self, count: int, each: int) -> int:
        if count < 0 or count * each > self.left:
            raise Corrupt(f"a count of {count} with {self.left} bytes left")
        return count

    def string(self) -> str:
        """An int16 length and that many bytes of UTF-8."""
        length = self.int16()
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
        if self.left < length:
            raise Truncated(f"{length} bytes needed at byte {self._at}, {self.left} left")
        start = self._at
        self._at += length
        return self._data[start : self._at]

    def rest(self) -> memoryview:
        """All bytes not yet taken, not copied."""
        return self.view(self.left)

    def end(self) -> None:
        """Nothing may be left over (W12)."""
        if self.left:
            raise Corrupt(f"{self.left} bytes left over after the last field")


def int16(value: int) -> bytes:
    """`value` in two bytes."""
    return _INT16.pack(value)


def int32(value: int) -> bytes:
    """`value` in four bytes."""
    return _INT32.pack(value)


def int64(value: int) -> bytes:
    """`value` in eight bytes."""
    return _INT64.pack(value)


def string(value: str) -> bytes:
    """An int16 length in bytes, then UTF-8."""
    data = value.encode()
    return int16(len(data)) + data
