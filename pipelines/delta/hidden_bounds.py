"""Replaces bounds in actions of the delta log by constant ones (faults Y01, Y02, A24).

They are those of personal columns, and those of all fields in files that were deleted because of an erasure. Bounds
that deltalake leaves out or rounds are replaced too: of infinite numbers, of columns with only NaN, of decimals, and of
times in a far future. Everything else stays as it is, to the byte: a number with 38 digits would lose some as a Python
float. No bound of a column with an order is ever left out, because readers that use pyarrow find no rows in a file
whose column has none.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from typing import Any, Self
from urllib.parse import unquote

import msgspec
import pyarrow as pa

from pipelines.layout.file_statistics import constant_bounds
from pipelines.layout.layout import LAYOUTS, RAW, TYPED
from pipelines.layout.personal import is_personal
from pipelines.layout.rows import FILE_SCHEMA

_STATS = b'"stats"'
_EXACT_DIGITS = range(16)
"""A floating-point number, as which deltalake writes the bound of a decimal, keeps at most this many digits."""
_ROUNDED_DIGITS = range(16, 20)
"""With so many digits it may have been rounded. It is never written with more."""
_MILLISECONDS = re.compile(r"(.*\.\d{3})(Z?)")
_FAR_FUTURE = "2200"
"""From this year on, the seconds since 1970 as a floating-point number are not exact to the microsecond."""
_NULL = msgspec.Raw(b"null")
_EDGES = {"minValues": 0, "maxValues": 1}
_NULL_COUNT = "nullCount"
_OWN_COLUMNS = {layout.name(name) for layout in (RAW, TYPED) for name in FILE_SCHEMA.names} | {
    layout.partition_column for layout in LAYOUTS
}
"""The columns that say where a row is from and when it was loaded. Proofs need their bounds."""
_Members = dict[str, msgspec.Raw]
_members = msgspec.json.Decoder(_Members).decode


def digest_of(content: bytes) -> str:
    """The SHA-256 of a commit file without the statistics of its data files.

    A scrub replaces statistics, and the commits before and after it must remain the same commits. What the statistics
    say is proven by the files themselves.
    """
    digest = sha256()
    for line in content.splitlines():
        digest.update(_without_stats(line) if _STATS in line else line)
        digest.update(b"\n")
    return digest.hexdigest()


def _without_stats(line: bytes) -> bytes:
    actions = {
        kind: _encoded({name: value for name, value in _members(action).items() if name != "stats"})
        for kind, action in _members(line).items()
    }
    return msgspec.json.encode(actions)


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenBounds:
    """The bounds that the log of a table must not have.

    Args:
        personal: the personal columns, with their types.
        inexact: the columns of which deltalake writes no or wrong bounds.
        nested: the columns that are structs, lists or maps. They have no order. deltalake writes bounds of some of
            their members, and Polars cannot read such a table (fault A25).
        fields: all columns with an order that do not say where a row is from.
        deleted: the paths of files that were deleted. None of their bounds is needed.
    """

    personal: Mapping[str, pa.DataType] = field(default_factory=dict)
    inexact: Mapping[str, pa.DataType] = field(default_factory=dict)
    nested: AbstractSet[str] = frozenset()
    fields: Mapping[str, pa.DataType] = field(default_factory=dict)
    deleted: Collection[str] = ()

    @classmethod
    def of(cls, columns: Iterable[pa.Field], names: Collection[str] = (), deleted: Collection[str] = ()) -> Self:
        """Those of a table with these columns, of which the marked ones and those with these names are personal."""
        present = {column.name: column for column in columns}
        personal = {name: column.type for name, column in present.items() if is_personal(column) or name in names}
        fields = {name: column.type for name, column in present.items() if name not in _OWN_COLUMNS}
        inexact = {name: column.type for name, column in present.items() if _is_inexact(column)}
        nested = {name for name, column in present.items() if pa.types.is_nested(column.type)}
        return cls(personal=personal, inexact=inexact, nested=nested, fields=fields, deleted=deleted)

    def __bool__(self) -> bool:
        return bool(self.hides or self.inexact or self.nested)

    @property
    def hides(self) -> bool:
        """Whether there are values that no object of the log may show."""
        return bool(self.personal or self.deleted)

    def hidden(self, content: bytes) -> bytes:
        """The text of a commit file without the bounds."""
        lines = (self._hidden_line(line) if _STATS in line else line for line in content.splitlines(keepends=True))
        return b"".join(lines)

    def _hidden_line(self, line: bytes) -> bytes:
        actions = _members(line)
        changed = {kind: self._hidden_action(action) for kind, action in actions.items()}
        if changed == actions:
            return line
        return msgspec.json.encode(changed) + (b"\n" if line.endswith(b"\n") else b"")

    def _hidden_action(self, action: msgspec.Raw) -> msgspec.Raw:
        members = _members(action)
        stats = msgspec.json.decode(members["stats"]) if "stats" in members else None
        if not stats:
            return action
        hidden = self.hidden_stats(unquote(msgspec.json.decode(members["path"])), stats)
        return action if hidden == stats else _encoded({**members, "stats": _encoded(hidden)})

    def hidden_stats(self, path: str, stats: str) -> str:
        """Delta's statistics of the file at this path without the bounds."""
        types = self.fields if path in self.deleted else self.personal
        members = _members(stats)
        for name in {*_EDGES, _NULL_COUNT} & members.keys():
            columns = _members(members[name])
            if not self.nested.isdisjoint(columns):
                members[name] = _encoded({name: value for name, value in columns.items() if name not in self.nested})
        filled = _filled_columns(members)
        for name, edge in _EDGES.items():
            bounds = _members(members.get(name, b"{}"))
            mended = {
                name: _mended(kind, bounds.get(name, _NULL), edge)
                for name, kind in self.inexact.items()
                if name in filled
            }
            hidden = {
                name: bounds[name] if bounds[name] == _NULL else _constant(types[name], edge)
                for name in types
                if name in bounds and name not in self.nested
            }
            constants = {**mended, **hidden}
            if constants != {name: bounds.get(name) for name in constants}:
                members[name] = _encoded({**bounds, **constants})
        return msgspec.json.encode(members).decode()


def _is_inexact(column: pa.Field) -> bool:
    """Whether deltalake can write wrong bounds of a column. Penstock's own columns have no times in a far future."""
    is_time = pa.types.is_timestamp(column.type) and column.name not in _OWN_COLUMNS
    return bool(is_time or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type))


def _filled_columns(stats: _Members) -> set[str]:
    """The columns of which the file has values."""
    rows = msgspec.json.decode(stats.get("numRecords", b"0"))
    nulls = msgspec.json.decode(stats.get(_NULL_COUNT, b"{}"))
    return {name for name, count in nulls.items() if count < rows}


def _mended(type_: pa.DataType, bound: msgspec.Raw, edge: int) -> msgspec.Raw:
    """The bound of a column with values. Readers understand no exponent in that of a decimal (fault A22)."""
    if bound == _NULL:
        return _constant(type_, edge)
    text = bytes(bound).decode().strip('"')
    if pa.types.is_timestamp(type_):
        return _encoded(_with_microseconds(text)) if edge else bound
    if not pa.types.is_decimal(type_) or _has_all_digits(text, type_.scale):
        return bound
    if type_.precision in _EXACT_DIGITS:
        return msgspec.Raw(f"{Decimal(text):.{type_.scale}f}".encode())
    return _constant(type_, edge)


def _with_microseconds(text: str) -> str:
    """The upper bound with microseconds, if deltalake has cut them off: the last microsecond of the millisecond.

    Readers add the missing microseconds with floating-point numbers, which are not exact for a year such as 4888.
    """
    milliseconds = _MILLISECONDS.fullmatch(text)
    return f"{milliseconds[1]}999{milliseconds[2]}" if milliseconds and text >= _FAR_FUTURE else text


def _has_all_digits(text: str, scale: int) -> bool:
    """Whether a bound of a decimal has the form that Penstock writes, and was never a floating-point number."""
    whole, _, fraction = text.lstrip("-").partition(".")
    digits = whole.lstrip("0") + fraction
    return "e" not in text.lower() and len(fraction) == scale and len(digits) not in _ROUNDED_DIGITS


def _encoded(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _constant(type_: pa.DataType, edge: int) -> msgspec.Raw:
    constant = constant_bounds(type_)[edge]
    return _encoded(msgspec.Raw(constant.encode()) if pa.types.is_decimal(type_) else constant)
