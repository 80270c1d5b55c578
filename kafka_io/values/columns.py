"""Decides which column each field of a value goes into, and which columns are added for new fields.

A decoder states the fields of a schema as Arrow fields of the types that `decoding.py` lists. The columns are those of
the table. A field goes into the column of its own name. Six entries in the metadata of fields say more:

    comment   what the schema documents
    aliases   earlier names of the field, separated by commas
    field     in a column: the name of its field, if the column has another name
    type      the full name of the field's type in Avro, and after it the names that the type had before; for a member
              of a union also the names of types such as `long` and `array`
    connect   the field is a date or time only by its name in Kafka Connect; see `has_numbers_of`
    tags      the tags that the schema gives the field, such as `PII`, separated by commas

A column never changes its type, so a field whose type changes gets another column: `price_2` with `field = price`.

The column of a union is a struct of `member0`, `member1` ..., and an outermost union has these members as columns. A
type with a name of its own, such as a record, goes into the member of that name, wherever it is in the union. That is
its full name, or else its name without the namespace, or else an earlier name [Avro 1.12, Schema Resolution]. Other
types go into a member that holds them.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from kafka_io.errors import InvalidSchema
from kafka_io.values.column_types import (
    TYPE,
    content_field,
    content_type,
    holds,
    is_promotion,
    is_union,
    with_content_type,
)

COMMENT, ALIASES, FIELD, CONNECT, TAGS = b"comment", b"aliases", b"field", b"connect", b"tags"
_CONFLUENT_TAGS = "confluent:tags"
_KINDS = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string", "array", "map"})
"""The types of Avro that have no names of their own."""

# Delta refuses these characters in the names of columns, and no reader opens a table with a NUL in one (fault E01).
_REFUSED = re.compile(r"[ ,;{}()\n\t=\x00]")
# Fuzzed schemas need at most three rounds; the last one adds nothing.
_MAX_ROUNDS = 100


def described(
    name: str,
    kind: pa.DataType,
    *,
    comment: str = "",
    aliases: Sequence[str] = (),
    type_names: Sequence[str] = (),
    tags: Sequence[str] = (),
) -> pa.Field:
    """A nullable field with its comment, its earlier names, the names of its type, and its tags as metadata."""
    metadata = {COMMENT: comment, ALIASES: ",".join(aliases), TYPE: ",".join(type_names), TAGS: ",".join(tags)}
    known = {key: value.encode() for key, value in metadata.items() if value}
    return pa.field(name, kind, metadata=known or None)


def tags_of(declared: Mapping[str, Any]) -> tuple[str, ...]:
    """The tags that a schema of Avro or JSON declares for a field. What is no tag is left out."""
    tags = declared.get(_CONFLUENT_TAGS)
    texts = [tag for tag in (tags if isinstance(tags, list) else ()) if isinstance(tag, str)]
    return tuple(text for text in texts if text and text.isprintable() and "," not in text)


def with_tags(field: pa.Field, tags: Iterable[str]) -> pa.Field:
    """The field with these tags besides its own."""
    all_tags = ",".join(dict.fromkeys([*_texts(field, TAGS), *tags]))
    return field.with_metadata({**(field.metadata or {}), TAGS: all_tags.encode()}) if all_tags else field


def has_tag(field: pa.Field, tags: Collection[str]) -> bool:
    """Whether the field, or one inside it, has one of these tags."""
    return not set(tags).isdisjoint(_texts(field, TAGS)) or any(has_tag(inner, tags) for inner in _inside(field.type))


def _inside(kind: pa.DataType) -> Iterable[pa.Field]:
    """The fields inside a type."""
    if types.is_struct(kind):
        return list(kind)
    return [content_field(kind)] if types.is_list(kind) or types.is_map(kind) else ()


def with_connect(field: pa.Field) -> pa.Field:
    """The field with the mark that only its name in Kafka Connect says what its numbers mean."""
    return field.with_metadata({**(field.metadata or {}), CONNECT: b"time"})


def has_numbers_of(column: pa.Field, field: pa.Field) -> bool:
    """Whether a column has the plain numbers of a field that Kafka Connect names a date or a time.

    Versions up to 0.6 did not know these names. Their columns keep their type, and what their numbers mean.
    """
    marks = (column.metadata or {}).keys()
    return types.is_int64(column.type) and CONNECT in (field.metadata or {}) and not marks & {CONNECT, b"json"}


def field_name(column: pa.Field) -> str:
    """Name of the field that a column takes its values from."""
    name: str = (column.metadata or {}).get(FIELD, column.name.encode()).decode()
    return name


def aliases(field: pa.Field) -> list[str]:
    """Earlier names of a field."""
    return _texts(field, ALIASES)


def _type_names(field: pa.Field) -> list[str]:
    """The names of a field's type, the present one first; none if it has no name of its own."""
    names = _texts(field, TYPE)
    return [] if names and names[0] in _KINDS else names


def _texts(field: pa.Field, key: bytes) -> list[str]:
    text: str = (field.metadata or {}).get(key, b"").decode()
    return text.split(",") if text else []


def assign(fields: Sequence[pa.Field], columns: Sequence[pa.Field]) -> list[int | None]:
    """Index of the column that each field goes into; None for a field that no column holds.

    A column takes one field: the one of its own name, or else one that it has as an alias, or else one that has the
    column's name as an alias. If several columns have the same field, the first whose type holds it takes it.
    """
    if _are_members(fields):
        places = _places_of_members(columns)
        assigned = assign_members(fields, [columns[place] for place in places])
        return [None if index is None else places[index] for index in assigned]
    return _assigned(fields, columns, _BY_NAME)


def assign_members(fields: Sequence[pa.Field], members: Sequence[pa.Field]) -> list[int | None]:
    """Index of the member of a union's column that each type of a union goes into; None if no member holds a type.

    The types decide, because unions get reordered. A member that holds a type without a name only by promotion comes
    last: not every long is a double, and not all bytes are text. Otherwise a member of the same place comes before
    others, and then a member of the same type.
    """
    named = _assigned(fields, members, _BY_TYPE_NAME)
    unnamed = [(place, member) for place, member in enumerate(members) if not _type_names(member)]
    return [
        place if _type_names(field) else _best_member(field, unnamed)
        for field, place in zip(fields, named, strict=True)
    ]


def _best_member(field: pa.Field, members: Iterable[tuple[int, pa.Field]]) -> int | None:
    """Place of the member that a type without a name goes into."""
    ranks = (
        (is_promotion(member.type, field.type), member.name != field.name, member.type != field.type, place)
        for place, member in members
        if holds(member.type, field.type)
    )
    return min(ranks, default=(None,))[-1]


_Names = Callable[[pa.Field], Iterable[str]]
# The names by which fields and columns find each other: of the field, and of the column. The first pairs come first.
_BY_NAME: Sequence[tuple[_Names, _Names]] = (
    (lambda field: [field.name], lambda column: [field_name(column)]),
    (lambda field: [field.name], aliases),
    (aliases, lambda column: [field_name(column)]),
)
_BY_TYPE_NAME: Sequence[tuple[_Names, _Names]] = (
    (lambda field: _type_names(field)[:1], lambda member: _type_names(member)[:1]),
    (lambda field: _unqualified(_type_names(field)[:1]), lambda member: _unqualified(_type_names(member)[:1])),
    (lambda field: _unqualified(_type_names(field)[:1]), lambda member: _unqualified(_type_names(member)[1:])),
    (lambda field: _unqualified(_type_names(field)[1:]), lambda member: _unqualified(_type_names(member)[:1])),
)


def _unqualified(names: Iterable[str]) -> list[str]:
    return [name.rpartition(".")[2] for name in names]


def _assigned(
    fields: Sequence[pa.Field], columns: Sequence[pa.Field], pairs: Sequence[tuple[_Names, _Names]]
) -> list[int | None]:
    """Index of the column of each field, each taken by one field."""
    assigned: dict[int, int] = {}
    taken: set[int] = set()
    for names_of_field, names_of_column in pairs:
        by_name = defaultdict[str, list[int]](list)
        for place, column in enumerate(columns):
            for name in names_of_column(column) if place not in taken else ():
                by_name[name].append(place)
        for index, field in enumerate(fields):
            places = (place for name in names_of_field(field) for place in by_name.get(name, ()))
            fitting = (place for place in places if place not in taken and _fits(columns[place], field))
            if index not in assigned and (first := min(fitting, default=None)) is not None:
                assigned[index] = first
                taken.add(first)
    return [assigned.get(index) for index in range(len(fields))]


def _fits(column: pa.Field, field: pa.Field) -> bool:
    return holds(column.type, field.type) or has_numbers_of(column, field)


def _are_members(fields: Iterable[pa.Field]) -> bool:
    """Whether fields are the members of an outermost union."""
    return all(TYPE in (field.metadata or {}) for field in fields) and is_union(pa.struct(fields))


def _places_of_members(columns: Iterable[pa.Field]) -> list[int]:
    """Indexes of the columns that are members of an outermost union. The types of other columns are not recorded."""
    return [place for place, column in enumerate(columns) if TYPE in (column.metadata or {})]


def grow(columns: pa.Schema, fields: Iterable[pa.Field]) -> pa.Schema:
    """The columns of a table, and after them new columns for the fields that none of them holds.

    Structs grow in the same way. Names are unique without regard to case, because Spark does not distinguish it.

    >>> grow(pa.schema([("price", pa.int64())]), [pa.field("price", pa.string())]).names
    ['price', 'price_2']
    """
    return pa.schema(_grown_fields(list(columns), fields), columns.metadata)


def grow_until_stable(columns: pa.Schema, steps: Sequence[Callable[[pa.Schema], pa.Schema]]) -> pa.Schema:
    """The columns after steps of which each adds what one schema needs. The steps repeat until none adds anything.

    A column that a later schema adds can take a field of an earlier schema, and then needs the members of that field.
    For example, a field `old` with the alias `new` is in the column `new` until there is a column `old`.

    Raises:
        InvalidSchema: the steps still add columns after 100 rounds.
    """
    for _ in range(_MAX_ROUNDS):
        before = columns
        for step in steps:
            columns = step(columns)
        if columns.equals(before, check_metadata=True):
            return columns
    raise InvalidSchema(f"the fields of the schemas still need new columns after {_MAX_ROUNDS} rounds")


def _grown_fields(columns: list[pa.Field], fields: Iterable[pa.Field]) -> list[pa.Field]:
    fields = list(fields)
    if _are_members(fields):
        return _grown_outermost_union(columns, fields)
    names = ColumnNames(columns)
    for field, index in zip(fields, assign(fields, columns), strict=True):
        if index is None:
            columns.append(new_column(_without_type_names(field), names))
        else:
            columns[index] = columns[index].with_type(_grown_type(columns[index].type, field))
    return columns


def _grown_outermost_union(columns: list[pa.Field], fields: Sequence[pa.Field]) -> list[pa.Field]:
    places = _places_of_members(columns)
    members = _grown_members([columns[place] for place in places], fields, ColumnNames(columns))
    for place, member in zip(places, members, strict=False):
        columns[place] = member
    return [*columns, *members[len(places) :]]


def _grown_members(members: list[pa.Field], fields: Sequence[pa.Field], names: "ColumnNames") -> list[pa.Field]:
    """The members of a union's column. A type gets a member of its own beside another type that would hold it."""
    unnamed = {field.type for field in fields if not _type_names(field)}
    for field, place in zip(fields, assign_members(fields, members), strict=True):
        if place is None or (not _type_names(field) and _is_shared(members[place].type, field.type, unnamed)):
            members.append(new_column(field.with_name(f"member{len(members)}"), names))
        else:
            members[place] = members[place].with_type(_grown_type(members[place].type, field))
    return members


def _is_shared(member: pa.DataType, kind: pa.DataType, others: Collection[pa.DataType]) -> bool:
    """Whether a member would hold a type only by promotion, and also another type of the same union exactly."""
    return is_promotion(member, kind) and member in others


def _grown_type(column: pa.DataType, field: pa.Field) -> pa.DataType:
    """The type of a column that also holds a field."""
    if is_union(column):
        single = described("", field.type, type_names=_texts(field, TYPE))
        types_of_field = list(field.type) if is_union(field.type) else [single]
        return pa.struct(_grown_members(list(column), types_of_field, ColumnNames(column)))
    if types.is_struct(column):
        return pa.struct(_grown_fields(list(column), field.type))
    if types.is_map(column) or types.is_list(column):
        return with_content_type(column, _grown_type(content_type(column), content_field(field.type)))
    return column


class ColumnNames:
    """The names that columns have. Case does not matter, because Spark does not distinguish it."""

    def __init__(self, columns: Iterable[pa.Field] = ()) -> None:
        self._taken = {column.name.casefold() for column in columns}
        self._last_numbers: dict[str, int] = {}

    def take(self, name: str) -> str:
        """The name for another column: `name`, or `name_2`, `name_3` if other columns have that name.

        >>> names = ColumnNames([pa.field("price", pa.int64())])
        >>> names.take("Price"), names.take("price")
        ('Price_2', 'price_3')
        """
        key, free = name.casefold(), name
        number = self._last_numbers.get(key, 1)
        while free.casefold() in self._taken:
            number += 1
            free = f"{name}_{number}"
        self._last_numbers[key] = number
        self._taken.add(free.casefold())
        return free


def new_column(field: pa.Field, names: ColumnNames) -> pa.Field:
    """A column for a field, with a name that no other column has. The name is taken from then on."""
    name = names.take(_REFUSED.sub("_", field.name) or "_")
    column = field.with_type(_type_of_new_column(field.type)).with_name(name).with_nullable(True)
    if name != field.name:
        column = column.with_metadata({**(field.metadata or {}), FIELD: field.name.encode()})
    return column


def _type_of_new_column(kind: pa.DataType) -> pa.DataType:
    """The type of a new column, whose structs have unique names too."""
    if is_union(kind):
        return pa.struct([new_column(member, ColumnNames()) for member in kind])
    if types.is_struct(kind):
        return pa.struct(_grown_fields([], kind))
    if types.is_map(kind) or types.is_list(kind):
        return with_content_type(kind, _type_of_new_column(content_type(kind)))
    return kind


def _without_type_names(field: pa.Field) -> pa.Field:
    """The field without the names of its type, which only matter in unions."""
    metadata = {key: text for key, text in (field.metadata or {}).items() if key != TYPE}
    return field.with_metadata(metadata) if metadata else field.remove_metadata()
