"""Cells whose value the database did not send, because an update did not touch it: Debezium writes a placeholder.

The placeholder is a text. In a column of another type the cell has what Debezium makes of it: its bytes, an array that
is made of it, or a map with it. A text may also be the JSON or the base64 of such a value.
"""

import base64
import hashlib
import json
import uuid
from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa

from resources.settings.topic_state import placeholder_bytes


def placeholder_condition(kind: pa.DataType, cell: str, setting: str) -> str | None:
    """The SQL condition for cells of this type that have the placeholder; None if no cell of this type can have it.

    Args:
        kind: the type of the column.
        cell: the cell, as an SQL expression.
        setting: the connector's `unavailable.value.placeholder`: a text, or bytes as `hex:` and their digits.
    """
    own = placeholder_bytes(setting)
    text = own.decode(errors="replace")
    if pa.types.is_string(kind):
        return f"{cell} in ({_list(map(_text, _texts(own, text)))})"
    if pa.types.is_binary(kind):
        return f"{cell} = {_blob(own)}"
    if pa.types.is_map(kind) and pa.types.is_string(kind.key_type):
        return f"map_keys({cell}) = [{_text(text)}]"
    if pa.types.is_struct(kind):
        member = kind.get_field_index(text)
        is_text = member >= 0 and pa.types.is_string(kind.field(member).type)
        return f"struct_extract({cell}, {_text(text)}) = {_text(text)}" if is_text else None
    return _array_condition(kind.value_type, cell, own, text) if pa.types.is_list(kind) else None


def _array_condition(kind: pa.DataType, cell: str, own: bytes, text: str) -> str | None:
    """The same for arrays of a type. One of texts or bytes has one item, and one of numbers an item for each byte."""
    if pa.types.is_string(kind):
        return f"{cell} in ([{_text(text)}], [{_text(_uuid_text(own))}])"
    if pa.types.is_binary(kind):
        return f"{cell} = [{_blob(own)}]"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        scale = kind.scale if pa.types.is_decimal(kind) else 0
        return f"{cell} = [{_list(str(Decimal(number).scaleb(-scale)) for number in _signed(own))}]"
    return None


def _texts(own: bytes, text: str) -> list[str]:
    values: list[object] = [[text], {text: text}, [_uuid_text(own)], _signed(own)]
    encoded = [base64.b64encode(own), base64.urlsafe_b64encode(own), own.hex().encode()]
    texts = [text, *(json.dumps(value, separators=(",", ":"), ensure_ascii=False) for value in values)]
    return list(dict.fromkeys([*texts, *(item.decode() for item in encoded)]))


def _signed(own: bytes) -> list[int]:
    """The bytes as Java has them: from -128 to 127."""
    return [number - 256 if number > 127 else number for number in own]


def _uuid_text(own: bytes) -> str:
    """The placeholder in arrays of UUIDs: the UUID of version 3 of its bytes, without a namespace."""
    return str(uuid.UUID(bytes=hashlib.md5(own, usedforsecurity=False).digest(), version=3))


def _list(items: Iterable[str]) -> str:
    return ", ".join(items)


def _text(value: str) -> str:
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def _blob(value: bytes) -> str:
    return f"from_hex('{value.hex()}')"
