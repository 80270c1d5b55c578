"""Values of recursive types as JSON text, because a column cannot contain itself.

Logical types are written as the types below them, except decimals and UUIDs. Bytes become text with one character per
byte, as in Avro's own JSON encoding; a union is its value. This is slow, and only recursive types need it.
"""

import json
import math
import struct
import uuid
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context
from decimal import Decimal as Number
from typing import Any

from kafka_io.values.avro.schema import (
    Array,
    AvroType,
    Decimal,
    Enumeration,
    FixedBytes,
    Map,
    Primitive,
    RecordType,
    Union,
)

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_FIXED_FORMATS = {"float": "<f", "double": "<d", "boolean": "<?"}


class RepeatedKey(Exception):
    """A map has a key twice, which an object of JSON cannot have."""


def json_text(avro: AvroType, data: bytes) -> bytes:
    """A value that the kernel has checked, as JSON.

    Raises:
        RepeatedKey: a map in it has a key twice.
    """
    return json.dumps(_Reader(data).read(avro), ensure_ascii=False, separators=(",", ":")).encode()


class _Reader:
    """Reads the values of types one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def read(self, avro: AvroType) -> Any:  # noqa: PLR0911 - one for each kind of type
        """The next value."""
        match avro:
            case RecordType():
                return {field.name: self.read(field.type) for field in avro.fields}
            case Union(branches):
                return self.read(branches[self._long()])
            case Array(items):
                return [self.read(items) for _ in self._items()]
            case Map(values):
                entries = [(self._bytes(self._long()).decode(), self.read(values)) for _ in self._items()]
                if len(dict(entries)) < len(entries):
                    raise RepeatedKey
                return dict(entries)
            case Enumeration(symbols):
                return symbols[self._long()]
            case Decimal(scale, size):
                digits = self._bytes(size if size >= 0 else self._long())
                return format(Number(int.from_bytes(digits, "big", signed=True)).scaleb(-scale, _EXACT), "f")
            case FixedBytes(size, logical):
                data = self._bytes(size)
                return str(uuid.UUID(bytes=data)) if logical == "uuid" else data.decode("latin-1")
            case Primitive(name):
                return self._primitive(name)

    def _primitive(self, name: str) -> Any:
        if name == "null":
            return None
        if name in _FIXED_FORMATS:
            layout = struct.Struct(_FIXED_FORMATS[name])
            [value] = layout.unpack(self._bytes(layout.size))
            # JSON has no infinities.
            return value if math.isfinite(value) else str(value)
        number = self._long()
        if name in {"int", "long"}:
            return number
        data = self._bytes(number)
        return data.decode() if name == "string" else data.decode("latin-1")

    def _items(self) -> Any:
        while count := self._long():
            if count < 0:
                self._long()  # size of the block
            yield from range(abs(count))

    def _long(self) -> int:
        number = shift = 0
        while True:
            byte = self._data[self._position]
            self._position += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)

    def _bytes(self, size: int) -> bytes:
        start = self._position
        self._position += size
        return self._data[start : self._position]
