"""Random pairs of Avro schemas, of which one evolved from the other, and where a table of both has their values.

The two schemas are versions 0 and 1. A table can begin with the columns of either version and grow by the other one, so
columns have an order of versions: `(1, 0)` are the columns of version 1 that grew by version 0. A column that only one
version fills has an order of that version alone.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.kafka_io.values.avro.making import SchemaMaker

Order = tuple[int, ...]
_TEXT_IN_BYTES = {"type": "bytes", "content": "text"}
_LOCAL_MILLIS = {"type": "long", "logicalType": "local-timestamp-millis"}
_MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
_MICROS = {"type": "long", "logicalType": "timestamp-micros"}
_DATE = {"type": "int", "logicalType": "date"}
_HALF = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 1}
_CENT = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
# Types of one column, and pairs of types of which no column holds both.
_ONE_COLUMN = (
    ("int", "long"),
    ("float", "double"),
    (_MILLIS, _MICROS),
    ({"type": "string", "logicalType": "uuid"}, "string"),
)
_TWO_COLUMNS = (("long", "string"), ("boolean", "double"), (_MILLIS, _LOCAL_MILLIS), (_DATE, "int"), (_HALF, _CENT))
_TO_DOUBLE = (("int", "double"), ("long", "double"), ("long", "float"), ("int", "float"))
# Types of different columns, of which a union can have any.
_UNION = (
    *(("int", "long"), ("double", "double"), ("string", "string"), ("bytes", "bytes"), ("boolean", "boolean")),
    *[({"type": "array", "items": "long"},) * 2, ({"type": "map", "values": "string"},) * 2],
)


_NAMESPACES = ("a.", "a.b.", "")


class Change(ABC):
    """A type in both versions."""

    @abstractmethod
    def types(self) -> tuple[Any, Any]:
        """The type in each version."""

    @abstractmethod
    def is_one_column(self, first: int) -> bool:
        """Whether the column of version `first` holds the values of the other version too."""

    @abstractmethod
    def in_column(self, value: Any, version: int, order: Order) -> Any:
        """The value of a row of one version, in a column of this order."""


@dataclass(frozen=True)
class Leaf(Change):
    """Two types without inner types.

    Args:
        before, after: the types.
        held: whether the column of `before` holds both, and whether that of `after` does.
        into: gives the value in the column of each version.
    """

    before: Any
    after: Any
    held: tuple[bool, bool] = (True, True)
    into: tuple[Callable[[Any], Any], Callable[[Any], Any]] = (lambda value: value, lambda value: value)

    def types(self) -> tuple[Any, Any]:
        """See Change."""
        return self.before, self.after

    def is_one_column(self, first: int) -> bool:
        """See Change."""
        return self.held[first]

    def in_column(self, value: Any, version: int, order: Order) -> Any:
        """See Change."""
        return value if order[0] == version else self.into[order[0]](value)


@dataclass(frozen=True)
class Optional(Change):
    """A type that one of the versions, or both, allow to be null."""

    inner: Change
    is_optional: tuple[bool, bool]

    def types(self) -> tuple[Any, Any]:
        """See Change."""
        before, after = (
            ["null", kind] if optional else kind
            for kind, optional in zip(self.inner.types(), self.is_optional, strict=True)
        )
        return before, after

    def is_one_column(self, first: int) -> bool:
        """See Change."""
        return self.inner.is_one_column(first)

    def in_column(self, value: Any, version: int, order: Order) -> Any:
        """See Change."""
        return None if value is None else self.inner.in_column(value, version, order)


@dataclass(frozen=True)
class Items(Change):
    """Arrays or maps, whose items change."""

    inner: Change
    kind: str

    def types(self) -> tuple[Any, Any]:
        """See Change."""
        before, after = (
            {"type": self.kind, "items" if self.kind == "array" else "values": kind} for kind in self.inner.types()
        )
        return before, after

    def is_one_column(self, first: int) -> bool:
        """See Change."""
        return self.inner.is_one_column(first)

    def in_column(self, value: Any, version: int, order: Order) -> Any:
        """See Change."""
        if self.kind == "array":
            return [self.inner.in_column(item, version, order) for item in value]
        return [(key, self.inner.in_column(item, version, order)) for key, item in value]


@dataclass(frozen=True)
class Union(Change):
    """Unions of several types, in any order. The later version can have more of them.

    Args:
        before, after: the members that each version has. A member stays one object through both versions.
        nulls: the place of null in each version; None if the version has none.
    """

    before: Sequence[Change]
    after: Sequence[Change]
    nulls: tuple[int | None, int | None]

    def types(self) -> tuple[Any, Any]:
        """See Change."""
        return self._type(0), self._type(1)

    def is_one_column(self, first: int) -> bool:
        """A column of one type holds no union."""
        return len(self._members(first)) > 1

    def in_column(self, value: Any, version: int, order: Order) -> Any:
        """See Change."""
        members = list(self._members(order[0]))
        members += [member for later in order[1:] for member in self._members(later) if member not in members]
        if len(self._members(order[0])) == 1:
            [member] = self._members(order[0])
            return None if value is None else member.in_column(value, version, order)
        if value is None:
            return None
        row = dict.fromkeys(f"member{place}" for place in range(len(members)))
        member, content = self._content(value, version)
        own_order = tuple(other for other in order if member in self._members(other))
        return {**row, f"member{members.index(member)}": member.in_column(content, version, own_order)}

    def _content(self, value: Any, version: int) -> tuple[Change, Any]:
        """The member that a value has, and its content."""
        own = self._members(version)
        if len(own) == 1:
            return own[0], value
        [place] = (place for place in range(len(own)) if value[f"member{place}"] is not None)
        return own[place], value[f"member{place}"]

    def _members(self, version: int) -> Sequence[Change]:
        return (self.before, self.after)[version]

    def _type(self, version: int) -> Any:
        types, null = [member.types()[version] for member in self._members(version)], self.nulls[version]
        if null is None:
            return types if len(types) > 1 else types[0]
        return [*types[:null], "null", *types[null:]]


@dataclass(frozen=True, eq=False)
class Field:
    """A field of a record. `names` has its name in each version, and None for a version that lacks the field."""

    names: tuple[str | None, str | None]
    change: Change

    def declared(self, version: int) -> dict[str, Any]:
        """The field as a schema declares it. A new name has the old one as an alias."""
        name = self.names[version]
        is_renamed = version == 1 and self.names[0] not in {None, name}
        return {
            "name": name,
            "type": self.change.types()[version],
            **({"aliases": [self.names[0]]} if is_renamed else {}),
        }


@dataclass(frozen=True, eq=False)
class Record(Change):
    """Records with the fields of each version, in the order of that version.

    `names` has the full name in each version. A new name has the old one as an alias.
    """

    names: tuple[str, str]
    fields: tuple[Sequence[Field], Sequence[Field]]

    def types(self) -> tuple[Any, Any]:
        """See Change."""
        before, after = (
            {
                "type": "record",
                "name": self.names[version],
                "fields": [each.declared(version) for each in self.fields[version]],
            }
            for version in (0, 1)
        )
        bases = [name.rpartition(".")[2] for name in self.names]
        return before, {**after, **({"aliases": [self.names[0]]} if bases[0] != bases[1] else {})}

    def is_one_column(self, first: int) -> bool:
        """A record without fields has no column."""
        return len(self.fields[first]) > 0

    def in_column(self, value: Any, version: int, order: Order) -> Any:
        """See Change."""
        columns = self.columns(order)
        row: dict[str, Any] = dict.fromkeys(columns.values())
        for each in self.fields[version]:
            own_order = self._order_of(each, order)
            own_order = own_order if each.change.is_one_column(own_order[0]) else (version,)
            content = each.change.in_column(value[each.names[version]], version, own_order)
            row[columns[each, version]] = content
        return row

    def columns(self, order: Order) -> Mapping[tuple[Field, int], str]:
        """The column of each field in each version, in the order of the columns."""
        columns: dict[tuple[Field, int], str] = {}
        for version in order:
            for each in self.fields[version]:
                first = self._order_of(each, order)[0]
                name = each.names[version]
                assert name is not None
                if first != version and each.change.is_one_column(first):
                    name = columns[each, first]
                elif name in columns.values():
                    name = f"{name}_2"
                columns[each, version] = name
        return columns

    def _order_of(self, each: Field, order: Order) -> Order:
        """The versions that have the field."""
        return tuple(version for version in order if each.names[version] is not None)


@dataclass
class Evolution:
    """Makes records of two versions. `moves` are the changes that were made."""

    rng: random.Random
    moves: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._types = SchemaMaker(self.rng)
        self._names = 0

    def record(self, depth: int = 3, names: tuple[str, str] | None = None) -> Record:
        """A record. Its first field stays if the record is inside another type."""
        names = names or self._names_of_record()
        fields = [self._field(depth - 1) for _ in range(self.rng.randrange(1, 6))]
        if depth < 3:
            fields.append(Field(("id", "id"), Leaf("long", "long")))
        if self.rng.randrange(6) == 0:
            self.moves.add("a record contains itself")
            fields.append(Field(("self", "self"), Leaf(["null", names[0]], ["null", names[1]])))
        before = [each for each in fields if each.names[0]]
        after = [each for each in fields if each.names[1]]
        if self.rng.randrange(2):
            self.moves.add("reorder")
            self.rng.shuffle(after)
        return Record(names, (before, after))

    def _names_of_record(self) -> tuple[str, str]:
        """The names of a record in each version."""
        name, (namespace, other) = self._name("R"), self.rng.sample(_NAMESPACES, 2)
        names = {
            "a record keeps its name": (namespace + name, namespace + name),
            "a record with another namespace": (namespace + name, other + name),
            "a record with another name": (namespace + name, f"{namespace}{name}New"),
        }
        move = self.rng.choice([*names, "a record keeps its name"])
        self.moves.add(move)
        return names[move]

    def _field(self, depth: int) -> Field:
        name = self._name("f")
        names: dict[str, tuple[str | None, str | None]] = {
            "add": (None, name),
            "drop": (name, None),
            "rename": (name, f"{name}_new"),
            "keep": (name, name),
        }
        move = self.rng.choice(("add", "drop", "rename", *["keep"] * 5))
        self.moves.add(move)
        return Field(names[move], self._change(depth))

    def _change(self, depth: int) -> Change:
        makers: list[Callable[[int], Change]] = [self._leaf] * 2
        if depth > 0:
            makers += [self._optional, self._items, self._union, self._union, self._record]
        return self.rng.choice(makers)(depth)

    def _leaf(self, _depth: int) -> Change:
        rng = self.rng
        same = self._type_with_a_column()
        before, after = rng.sample(rng.choice(_TWO_COLUMNS), 2)
        changes: dict[str, Change] = {
            "the same type": Leaf(same, same),
            "a type of the same column": Leaf(*rng.choice(_ONE_COLUMN)),
            "a type of another column": Leaf(before, after, held=(False, False)),
            "an integer to a real number": Leaf(*rng.choice(_TO_DOUBLE), held=(False, True), into=(_same, float)),
            "a text to bytes": Leaf("string", _TEXT_IN_BYTES, into=(_text, _bytes)),
            "bytes to a text": Leaf(_TEXT_IN_BYTES, "string", into=(_bytes, _text)),
            "more symbols of an enum": Leaf(self._enum("A"), self._enum("A", "B")),
            "an enum to a text": Leaf(self._enum("A", "B"), "string"),
        }
        move = rng.choice(list(changes))
        self.moves.add(move)
        return changes[move]

    def _optional(self, depth: int) -> Change:
        inner = self.rng.choice((self._leaf, self._items, self._record))(depth - 1)
        is_optional = {
            "null stays allowed": (True, True),
            "null was allowed": (True, False),
            "null is now allowed": (False, True),
        }
        move = self.rng.choice(list(is_optional))
        self.moves.add(move)
        return Optional(inner, is_optional[move])

    def _items(self, depth: int) -> Change:
        kind = self.rng.choice(("array", "map"))
        self.moves.add("items of an array" if kind == "array" else "items of a map")
        return Items(self._change(depth - 1), kind)

    def _record(self, depth: int) -> Change:
        self.moves.add("a nested record")
        return self.record(depth)

    def _union(self, depth: int) -> Change:
        """A union that gets more types and another order, or a type that becomes a union."""
        rng = self.rng
        members: list[Change] = [Leaf(*types) for types in rng.sample(_UNION, 5)]
        members += [Leaf(kind, kind) for kind in (self._enum("A"), self._enum("A"), self._fixed(), self._fixed())]
        members += [self.record(depth - 1), self.record(depth - 1), *self._namesakes(depth - 1)]
        members = rng.sample(members, rng.randrange(2, 8))
        before = members[: rng.randrange(1, len(members) + 1)]
        after = rng.sample(members, len(members))
        self.moves.add("a type to a union" if len(before) == 1 else "a union")
        return Union(before, after, (self._place_of_null(before), self._place_of_null(after)))

    def _namesakes(self, depth: int) -> list[Change]:
        """Two records whose names differ only in their namespaces, and stay."""
        name = self._name("R")
        return [self.record(depth, (f"{namespace}{name}",) * 2) for namespace in _NAMESPACES[:2]]

    def _place_of_null(self, members: Sequence[Change]) -> int | None:
        return self.rng.choice((None, 0, len(members)))

    def _type_with_a_column(self) -> Any:
        while (kind := self._types.leaf()) == "null":
            pass
        return kind

    def _enum(self, *symbols: str) -> Any:
        return {"type": "enum", "name": self._name("E"), "symbols": list(symbols)}

    def _fixed(self) -> Any:
        return {"type": "fixed", "name": self._name("F"), "size": 3}

    def _name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"


def _same(value: Any) -> Any:
    return value


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value
