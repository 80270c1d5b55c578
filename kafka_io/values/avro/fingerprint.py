"""The fingerprint by which a single object of Avro names its schema [Avro 1.12 specification, Schema Fingerprints].

It is the CRC-64-AVRO of the schema in parsing canonical form: the schema with nothing but what decoding needs.
"""

from collections.abc import Iterable
from functools import reduce

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
    type_names,
)

_EMPTY = 0xC15D213AA4D7A795
"""The fingerprint of no bytes."""


def fingerprint(avro: AvroType) -> bytes:
    """The 8 bytes with which a single object names the schema: the least significant one is the first.

    >>> from kafka_io.values.avro.schema import parse_avro
    >>> fingerprint(parse_avro('"int"')).hex()
    '8f5c393f1ad57572'
    """
    crc = reduce(lambda crc, byte: crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF], canonical_form(avro).encode(), _EMPTY)
    return crc.to_bytes(8, "little")


def canonical_form(avro: AvroType) -> str:
    """The schema in parsing canonical form.

    >>> from kafka_io.values.avro.schema import parse_avro
    >>> canonical_form(parse_avro('{"type": "fixed", "namespace": "a", "name": "B", "size": 4, "doc": "four"}'))
    '{"name":"a.B","type":"fixed","size":4}'
    """
    return _text(avro, set())


def _text(avro: AvroType, declared: set[str]) -> str:  # noqa: PLR0911 - as many kinds of types
    """The text of a type. One that is in `declared` has only its name."""
    name = next(iter(type_names(avro)), "")
    if name in declared:
        return f'"{name}"'
    declared |= {name} - {""}
    match avro:
        case Primitive():
            return f'"{avro.name}"'
        case Array():
            return f'{{"type":"array","items":{_text(avro.items, declared)}}}'
        case Map():
            return f'{{"type":"map","values":{_text(avro.values, declared)}}}'
        case Union():
            return _list(_text(branch, declared) for branch in avro.branches)
        case Enumeration():
            symbols = (f'"{symbol}"' for symbol in avro.symbols)
            return f'{{"name":"{name}","type":"enum","symbols":{_list(symbols)}}}'
        case RecordType():
            fields = (f'{{"name":"{field.name}","type":{_text(field.type, declared)}}}' for field in avro.fields)
            return f'{{"name":"{name}","type":"record","fields":{_list(fields)}}}'
        case Decimal(size=-1):
            return '"bytes"'
        case Decimal() | FixedBytes():
            return f'{{"name":"{name}","type":"fixed","size":{avro.size}}}'


def _list(texts: Iterable[str]) -> str:
    return f"[{','.join(texts)}]"


def _remainder(byte: int) -> int:
    """The entry of the CRC table for a byte."""
    return reduce(lambda crc, _: crc >> 1 ^ (_EMPTY if crc & 1 else 0), range(8), byte)


_TABLE = [_remainder(byte) for byte in range(256)]
