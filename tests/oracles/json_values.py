"""Reads JSON by Python's own json and checks it against the types of columns: the oracle of the JSON decoder."""

import base64
import json
import math
import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

import pyarrow as pa

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?([Zz]|[-+]\d\d(?::?\d\d)?)?", re.ASCII
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class Refused(Exception):
    """The document does not fit the columns."""


class Number(str):
    """A number as it is written."""

    __slots__ = ()


class Object(list[tuple[str, Any]]):
    """An object: its pairs in their order."""


def row(document: bytes, columns: pa.Schema) -> dict[str, Any]:
    """The row of a document; values of columns with JSON text are parsed.

    Raises:
        Refused: it is not one document, or does not fit.
    """
    try:
        value = json.loads(
            document.decode(), object_pairs_hook=Object, parse_int=Number, parse_float=Number, parse_constant=_refuse
        )
    except (ValueError, RecursionError) as error:
        raise Refused(str(error)) from error
    _check_texts(value)
    if not isinstance(value, Object):
        raise Refused("no object")
    return struct(value, columns)


def _refuse(constant: str) -> NoReturn:
    raise Refused(constant)


def _check_texts(value: Any) -> None:
    """Refuse lone surrogates anywhere."""
    if isinstance(value, Object):
        for key, member in value:
            _check_texts(key)
            _check_texts(member)
    elif isinstance(value, list):
        for item in value:
            _check_texts(item)
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Refused("surrogate") from error


def struct(value: Object, fields: Any) -> dict[str, Any]:
    """The members of a struct."""
    counts = Counter(key for key, _ in value)
    known = dict(value)
    members = {}
    for field in fields:
        if counts[field.name] > 1:
            raise Refused("duplicate key")
        members[field.name] = typed(known.get(field.name), field)
    return members


def typed(value: Any, field: pa.Field) -> Any:
    """A value as pyarrow gives it back for this field."""
    if value is None or (field.metadata or {}).get(b"json") == b"text":
        return value
    kind = field.type
    if pa.types.is_nested(kind):
        return _nested(value, kind)
    if pa.types.is_boolean(kind):
        return _expect(value, bool)
    if pa.types.is_int64(kind) or pa.types.is_float64(kind) or pa.types.is_decimal(kind):
        return _number(value, kind)
    if isinstance(value, Number) or not isinstance(value, str):
        raise Refused("no text")
    return _text(value, kind)


def _nested(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return struct(_expect(value, Object), kind)
    if pa.types.is_map(kind):
        if len(dict(_expect(value, Object))) < len(value):
            raise Refused("duplicate key")
        return [(key, typed(item, kind.item_field)) for key, item in value]
    if isinstance(value, Object):
        raise Refused("object")
    return [typed(item, kind.value_field) for item in _expect(value, list)]


def _text(text: str, kind: pa.DataType) -> Any:
    if pa.types.is_string(kind):
        return text
    if pa.types.is_binary(kind):
        return _from_base64(text)
    return _date(text) if pa.types.is_date(kind) else _timestamp(text, has_zone=kind.tz is not None)


def _expect(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise Refused(f"no {kind.__name__}")
    return value


def _number(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_decimal(kind):
        if not isinstance(value, str) or not _NUMBER.fullmatch(value):
            raise Refused("no number")
        return _decimal(value, kind)
    if not isinstance(value, Number):
        raise Refused("no number")
    if pa.types.is_float64(kind):
        real = float(value)
        if math.isinf(real):
            raise Refused("out of range")
        return real
    if not re.fullmatch("-?[0-9]+", value) or len(value) > 30 or not -(2**63) <= int(value) < 2**63:
        raise Refused("no int64")
    return int(value)


def _decimal(text: str, kind: pa.DataType) -> Decimal:
    try:
        exact = Decimal(text)
    except InvalidOperation as error:
        raise Refused("exponent") from error
    sign, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    written = "".join(map(str, digits)).lstrip("0")
    shift = exponent + kind.scale
    if not written:
        return Decimal(0).scaleb(-kind.scale)
    if len(written) + shift > kind.precision:
        raise Refused("too large")
    if shift < 0 and (len(written) <= -shift or written[shift:].strip("0")):
        raise Refused("inexact")
    unscaled = written[:shift] if shift < 0 else written + shift * "0"
    return Decimal((sign, tuple(map(int, unscaled)), -kind.scale))


def _from_base64(text: str) -> bytes:
    if not re.fullmatch(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", text):
        raise Refused("base64")
    return base64.b64decode(text)


def _date(text: str) -> date:
    if not _DATE.fullmatch(text):
        raise Refused("date")
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise Refused("date") from error


def _timestamp(text: str, *, has_zone: bool) -> datetime:
    match = _TIMESTAMP.fullmatch(text)
    if match is None or (match[6] is not None) != has_zone:
        raise Refused("time")
    day, zone = _date(match[1]), UTC
    try:
        if match[6] is not None and match[6] not in "Zz":
            sign = -1 if match[6][0] == "-" else 1
            digits = match[6][1:].replace(":", "")
            minutes = int(digits[2:] or 0)
            if minutes > 59:
                raise Refused("zone")
            zone = timezone(sign * timedelta(hours=int(digits[:2]), minutes=minutes))
        micros = int((match[5] or "0")[:6].ljust(6, "0"))
        moment = datetime(day.year, day.month, day.day, int(match[2]), int(match[3]), int(match[4] or 0), micros, zone)
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Refused("time") from error
    return moment if has_zone else moment.replace(tzinfo=None)
