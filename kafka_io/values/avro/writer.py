"""Encodes JSON values as Avro, one at a time, so that they can be published.

JSON has fewer types than Avro. Bytes are a text whose characters are the bytes, as in Avro's JSON encoding. Dates and
times are texts in ISO 8601 or the number that Avro stores, decimals are numbers or texts. A value of a union does not
name its type, so it gets the first type that it fits.
"""

import decimal
import json
import math
import struct
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NoReturn

from kafka_io.errors import InvalidValue, printable
from kafka_io.values.avro.schema import (
    NO_DEFAULT,
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

_BITS = {"int": 32, "long": 64}
_FLOATS = {"float": "<f", "double": "<d"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_PER_MICROSECOND = {"millis": (1, 1000), "micros": (1, 1), "nanos": (1000, 1)}
_EXACT = decimal.Context(prec=100)


class _Misfit(Exception):
    """A value that does not fit its type. `path` leads to it from the outermost record."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path


def avro_from_json(schema: AvroType, document: bytes) -> bytes:
    """A JSON document as a value of the schema. A field that the document lacks gets its default.

    >>> from kafka_io.values.avro.schema import parse_avro
    >>> list(avro_from_json(parse_avro('{"type": "int", "logicalType": "date"}'), b'"1970-01-03"'))
    [4]

    Raises:
        InvalidValue: the document is not JSON, or does not fit the schema.
    """
    out = bytearray()
    try:
        _write(schema, json.loads(document, parse_float=decimal.Decimal, parse_constant=_no_number), out)
    except _Misfit as error:
        place = f"{error.path}: " if error.path else ""
        raise InvalidValue(f"the value does not fit the schema: {place}{error.reason}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"the value is not JSON: {printable(error)}") from error
    return bytes(out)


def _no_number(text: str) -> NoReturn:
    raise _Misfit(f"{text} is not JSON")


def _write(schema: AvroType, value: Any, out: bytearray) -> None:
    match schema:
        case Primitive():
            _PRIMITIVES[schema.name](schema, value, out)
        case Decimal():
            _write_decimal(schema, value, out)
        case FixedBytes():
            _write_fixed(schema, value, out)
        case Enumeration():
            if value not in schema.symbols:
                raise _expected(f"one of {', '.join(schema.symbols)}", value)
            _write_long(schema.symbols.index(value), out)
        case Array() | Map():
            _write_items(schema, value, out)
        case Union():
            _write_union(schema, value, out)
        case RecordType():
            _write_record(schema, value, out)


def _expected(wanted: str, value: Any) -> _Misfit:
    value_text = json.dumps(value, default=str)
    return _Misfit(f"expected {wanted}, not {printable(value_text)}")


def _within(place: str, schema: AvroType, value: Any, out: bytearray) -> None:
    """Write a part of a value, and add its place to an error."""
    try:
        _write(schema, value, out)
    except _Misfit as error:
        raise _Misfit(error.reason, f"{place}.{error.path}" if error.path else place) from None


def _write_long(number: int, out: bytearray) -> None:
    """A variable-length zigzag number."""
    zigzag = number << 1 if number >= 0 else ~(number << 1)
    while zigzag >= 0x80:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)


def _write_sized(data: bytes, out: bytearray) -> None:
    _write_long(len(data), out)
    out += data


def _write_null(_schema: Primitive, value: Any, _out: bytearray) -> None:
    if value is not None:
        raise _expected("null", value)


def _write_boolean(_schema: Primitive, value: Any, out: bytearray) -> None:
    if not isinstance(value, bool):
        raise _expected("true or false", value)
    out.append(value)


def _write_integer(schema: Primitive, value: Any, out: bytearray) -> None:
    number = _from_text(schema.logical, value) if schema.logical and isinstance(value, str) else value
    bits = _BITS[schema.name]
    if not isinstance(number, int) or isinstance(number, bool) or not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise _expected(schema.logical or f"a whole number of {bits} bits", value)
    _write_long(number, out)


def _from_text(logical: str, text: str) -> int:
    """The number that Avro stores for a date or time in ISO 8601."""
    kind, _, unit = logical.rpartition("-")
    try:
        if logical == "date":
            return date.fromisoformat(text).toordinal() - _EPOCH_DAY
        if kind == "time":
            start = datetime.combine(date.min, time.min)
            elapsed = datetime.combine(date.min, time.fromisoformat(text)) - start
        elif kind == "timestamp":
            elapsed = datetime.fromisoformat(text) - _EPOCH
        else:
            elapsed = datetime.fromisoformat(text) - _EPOCH.replace(tzinfo=None)
    except (ValueError, TypeError):  # a TypeError: only one of the two has a time zone
        raise _expected(f"{logical} in ISO 8601", text) from None
    factor, divisor = _PER_MICROSECOND[unit]
    number, remainder = divmod(elapsed // timedelta(microseconds=1) * factor, divisor)
    if remainder:
        raise _Misfit(f"{printable(text)} is more precise than {logical}")
    return number


def _write_float(schema: Primitive, value: Any, out: bytearray) -> None:
    if isinstance(value, bool) or not isinstance(value, int | decimal.Decimal):
        raise _expected("a number", value)
    try:
        packed = struct.pack(_FLOATS[schema.name], float(value))
    except OverflowError:
        raise _expected(f"a number that {schema.name} holds", value) from None
    if math.isinf(float(value)):
        raise _expected(f"a number that {schema.name} holds", value)
    out += packed


def _write_text(schema: Primitive, value: Any, out: bytearray) -> None:
    if not isinstance(value, str):
        raise _expected("a text", value)
    if schema.logical == "uuid":
        _uuid(value)
    try:
        _write_sized(value.encode(), out)
    except UnicodeEncodeError:
        raise _Misfit("the text has half of a surrogate pair") from None


def _uuid(value: Any) -> bytes:
    try:
        return uuid.UUID(value).bytes
    except (ValueError, AttributeError, TypeError):
        raise _expected("a UUID", value) from None


def _bytes(value: Any) -> bytes:
    try:
        return bytes(value.encode("latin-1"))
    except (UnicodeEncodeError, AttributeError):
        raise _expected("a text whose characters are bytes, up to \\u00ff", value) from None


def _write_bytes(_schema: Primitive, value: Any, out: bytearray) -> None:
    _write_sized(_bytes(value), out)


def _write_fixed(schema: FixedBytes, value: Any, out: bytearray) -> None:
    data = _uuid(value) if schema.logical == "uuid" else _bytes(value)
    if len(data) != schema.size:
        raise _expected(f"{schema.size} bytes", value)
    out += data


def _write_decimal(schema: Decimal, value: Any, out: bytearray) -> None:
    try:
        if isinstance(value, bool) or not isinstance(value, int | str | decimal.Decimal):
            raise _expected("a number", value)
        scaled = decimal.Decimal(value).scaleb(schema.scale, _EXACT)
        unscaled = int(scaled.to_integral_exact(context=_EXACT))
        size = schema.size if schema.size >= 0 else (unscaled.bit_length() + 8) // 8
        data = unscaled.to_bytes(size, "big", signed=True)
    except (decimal.DecimalException, ValueError, OverflowError):
        raise _expected(f"a decimal with {schema.scale} digits after the point", value) from None
    if unscaled != scaled:
        raise _expected(f"a decimal with {schema.scale} digits after the point", value)
    if schema.size >= 0:
        out += data
    else:
        _write_sized(data, out)


def _write_items(schema: Array | Map, value: Any, out: bytearray) -> None:
    """One block with all items, and the empty block that ends the list."""
    if not isinstance(value, list if isinstance(schema, Array) else dict):
        raise _expected("a list" if isinstance(schema, Array) else "an object", value)
    if value:
        _write_long(len(value), out)
    for place, item in enumerate(value):
        if isinstance(schema, Array):
            _within(str(place), schema.items, item, out)
        else:
            _write_text(Primitive("string"), item, out)
            _within(item, schema.values, value[item], out)
    out.append(0)


def _write_union(schema: Union, value: Any, out: bytearray) -> None:
    start, reasons = len(out), []
    for number, branch in enumerate(schema.branches):
        try:
            _write_long(number, out)
            _write(branch, value, out)
        except _Misfit as error:
            del out[start:]
            reasons.append(error)
        else:
            return
    # With one type besides null, only its error is of interest.
    value_errors = [
        error for error, branch in zip(reasons, schema.branches, strict=True) if branch != Primitive("null")
    ]
    raise value_errors[0] if len(value_errors) == 1 else _expected("a value of one of the union's types", value)


def _write_record(schema: RecordType, value: Any, out: bytearray) -> None:
    if not isinstance(value, dict):
        raise _expected(f"an object with the fields of {schema.name}", value)
    unknown = value.keys() - {field.name for field in schema.fields}
    if unknown:
        raise _Misfit(f"{schema.name} has no field {printable(min(unknown))}")
    for field in schema.fields:
        present = value.get(field.name, field.default)
        if present is NO_DEFAULT:
            raise _Misfit("the field is missing and has no default", field.name)
        _within(field.name, field.type, present, out)


_PRIMITIVES: Mapping[str, Callable[[Primitive, Any, bytearray], None]] = {
    "null": _write_null,
    "boolean": _write_boolean,
    "int": _write_integer,
    "long": _write_integer,
    "float": _write_float,
    "double": _write_float,
    "bytes": _write_bytes,
    "string": _write_text,
}
