"""Replaces bounds in actions of the delta log by constant ones (faults Y01, Y02).

They are those of personal columns, and those of all fields in files that were deleted because of an erasure.
Everything else stays as it is, to the byte: a number with 38 digits would lose some as a Python float. Bounds are only
replaced and never left out, because readers that use pyarrow find no rows in a file whose column has none.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
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
_EDGES = {"minValues": 0, "maxValues": 1}
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
class PersonalBounds:
    """The bounds that the log of a table must not have.

    Args:
        personal: the personal columns, with their types.
        fields: all columns with an order that do not say where a row is from.
        deleted: the paths of files that were deleted. None of their bounds is needed.
    """

    personal: Mapping[str, pa.DataType] = field(default_factory=dict)
    fields: Mapping[str, pa.DataType] = field(default_factory=dict)
    deleted: Collection[str] = ()

    @classmethod
    def of(cls, columns: Iterable[pa.Field], names: Collection[str] = (), deleted: Collection[str] = ()) -> Self:
        """Those of a table with these columns, of which the marked ones and those with these names are personal."""
        present = {column.name: column for column in columns}
        personal = {name: column.type for name, column in present.items() if is_personal(column) or name in names}
        fields = {name: column.type for name, column in present.items() if name not in _OWN_COLUMNS}
        return cls(personal=personal, fields=fields, deleted=deleted)

    def __bool__(self) -> bool:
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
        for name, edge in _EDGES.items():
            bounds = _members(members.get(name, b"{}"))
            constants = {name: _constant(types[name], bounds[name], edge) for name in types if name in bounds}
            if constants:
                members[name] = _encoded({**bounds, **constants})
        return msgspec.json.encode(members).decode()


def _encoded(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _constant(type_: pa.DataType, bound: msgspec.Raw, edge: int) -> msgspec.Raw:
    """The constant bound in the place of a bound, or of the bounds of the members of a struct."""
    if bytes(bound) == b"null":
        return bound
    if pa.types.is_struct(type_):
        inside = {member.name: member.type for member in type_}
        members = {name: value for name, value in _members(bound).items() if name in inside}
        return _encoded({name: _constant(inside[name], value, edge) for name, value in members.items()})
    constant = constant_bounds(type_)[edge]
    return _encoded(msgspec.Raw(constant.encode()) if pa.types.is_decimal(type_) else constant)
