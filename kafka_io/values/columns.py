"""Decides which column each field of a value goes into, and which columns are added for new fields.

A decoder states the fields of a schema as Arrow fields of the types that `decoding.py` lists. The columns are those of
the table. A field goes into the column of its own name. Three entries in the metadata of fields say more:

    comment   what the schema documents
    aliases   earlier names of the field, separated by commas
    field     in a column: the name of its field, if the column has another name

A column never changes its type, so a field whose type changes gets another column: `price_2` with `field = price`.
"""

import re
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
from pyarrow import types

from kafka_io.errors import InvalidSchema

COMMENT, ALIASES, FIELD = b"comment", b"aliases", b"field"

# Delta refuses these characters in the names of columns.
_REFUSED = re.compile(r"[ ,;{}()\n\t=]")
# Fuzzed schemas need at most three rounds; the last one adds nothing.
_MAX_ROUNDS = 100


def described(name: str, kind: pa.DataType, *, comment: str = "", aliases: Sequence[str] = ()) -> pa.Field:
    """A nullable field with its comment and earlier names as metadata."""
    metadata = {COMMENT: comment, ALIASES: ",".join(aliases)}
    known = {key: value.encode() for key, value in metadata.items() if value}
    return pa.field(name, kind, metadata=known or None)


def field_name(column: pa.Field) -> str:
    """Name of the field that a column takes its values from."""
    name: str = (column.metadata or {}).get(FIELD, column.name.encode()).decode()
    return name


def assign(fields: Sequence[pa.Field], columns: Sequence[pa.Field]) -> list[int | None]:
    """Index of the column that each field goes into; None for a field that no column holds.

    A column takes one field: the one of its own name, or else one that it has as an alias, or else one that has the
    column's name as an alias. If several columns have the same field, the first whose type holds it takes it.
    """
    taken: dict[int, int] = {}
    for fits in (_is_same, _is_alias_of_column, _is_alias_of_field):
        for index, field in enumerate(fields):
            if index not in taken.values():
                free = (place for place in range(len(columns)) if place not in taken)
                place = next((p for p in free if fits(field, columns[p]) and holds(columns[p].type, field.type)), None)
                if place is not None:
                    taken[place] = index
    places = {index: place for place, index in taken.items()}
    return [places.get(index) for index in range(len(fields))]


def column_of(field: pa.Field, columns: Iterable[pa.Field]) -> pa.Field | None:
    """The column that a single field goes into; None if no column holds it."""
    columns = list(columns)
    [place] = assign([field], columns)
    return None if place is None else columns[place]


def _is_same(field: pa.Field, column: pa.Field) -> bool:
    return field_name(column) == str(field.name)


def _is_alias_of_column(field: pa.Field, column: pa.Field) -> bool:
    return field.name in aliases(column)


def _is_alias_of_field(field: pa.Field, column: pa.Field) -> bool:
    return field_name(column) in aliases(field)


def member_of(field: pa.Field, members: Iterable[pa.Field]) -> pa.Field | None:
    """The member of a union's column that a value of this type goes into. Types decide, because unions get reordered.

    A member that holds the type only by promotion comes last: not every long is a double, and not all bytes are text.
    Otherwise a member of the same name comes before others, and then a member of the same type.
    """
    candidates = [member for member in members if holds(member.type, field.type)]
    return min(
        candidates,
        key=lambda member: (
            _is_promotion(member.type, field.type),
            member.name != field.name,
            member.type != field.type,
        ),
        default=None,
    )


def holds(column: pa.DataType, field: pa.DataType) -> bool:
    """Whether a column of one type takes the values of a field of another type, as Avro's schema resolution does.

    A long fits into a double, and text and bytes fit into each other. A record fits into any struct, because a struct
    can get new members. A value also fits into the column of a union that has a member for it.
    """
    if types.is_struct(column):
        if is_union(column):
            return is_union(field) or any(holds(member.type, field) for member in column)
        return types.is_struct(field) and not is_union(field)
    if types.is_map(column) or types.is_list(column):
        is_same = types.is_map(column) == types.is_map(field) and types.is_list(column) == types.is_list(field)
        if is_same and types.is_map(column):
            is_same = column.key_type.equals(field.key_type)
        return is_same and holds(content_type(column), content_type(field))
    return _is_promotion(column, field) or bool(column.equals(field))


def _is_promotion(column: pa.DataType, field: pa.DataType) -> bool:
    """Whether a column takes the values of a field although it has another type than the field."""
    return bool(
        (types.is_float64(column) and types.is_int64(field))
        or (types.is_string(column) and types.is_binary(field))
        or (types.is_binary(column) and types.is_string(field))
    )


def is_union(kind: pa.DataType) -> bool:
    """Whether a type is that of a union of several types: a struct of `member0`, `member1`, as Spark's from_avro."""
    return (
        types.is_struct(kind)
        and kind.num_fields > 0
        and all(kind.field(index).name == f"member{index}" for index in range(kind.num_fields))
    )


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
    for field, index in zip(fields, assign(fields, columns), strict=True):
        if index is None:
            columns.append(new_column(field, columns))
        else:
            columns[index] = columns[index].with_type(_grown_type(columns[index].type, field.type))
    return columns


def _grown_members(members: list[pa.Field], fields: Iterable[pa.Field]) -> list[pa.Field]:
    """The members of a union's column. A type gets a member of its own beside another type that would hold it."""
    fields = list(fields)
    for field in fields:
        member = member_of(field, members)
        is_shared = (
            member is not None
            and _is_promotion(member.type, field.type)
            and any(other.type.equals(member.type) for other in fields)
        )
        if member is None or is_shared:
            members.append(new_column(field.with_name(f"member{len(members)}"), members))
        else:
            index = members.index(member)
            members[index] = member.with_type(_grown_type(member.type, field.type))
    return members


def _grown_type(column: pa.DataType, field: pa.DataType) -> pa.DataType:
    if is_union(column):
        return pa.struct(_grown_members(list(column), field if is_union(field) else [pa.field("", field)]))
    if types.is_struct(column):
        return pa.struct(_grown_fields(list(column), field))
    if types.is_map(column) or types.is_list(column):
        return with_content_type(column, _grown_type(content_type(column), content_type(field)))
    return column


def new_column(field: pa.Field, columns: Iterable[pa.Field]) -> pa.Field:
    """A column for a field: `name`, or `name_2`, `name_3` if other columns have that name."""
    taken = {column.name.casefold() for column in columns}
    allowed = _REFUSED.sub("_", field.name) or "_"
    name, number = allowed, 1
    while name.casefold() in taken:
        number += 1
        name = f"{allowed}_{number}"
    column = field.with_type(_type_of_new_column(field.type)).with_name(name).with_nullable(True)
    if name != field.name:
        column = column.with_metadata({**(field.metadata or {}), FIELD: field.name.encode()})
    return column


def _type_of_new_column(kind: pa.DataType) -> pa.DataType:
    """The type of a new column, whose structs have unique names too."""
    if types.is_struct(kind):
        return pa.struct(_grown_fields([], kind))
    if types.is_map(kind) or types.is_list(kind):
        return with_content_type(kind, _type_of_new_column(content_type(kind)))
    return kind


def content_type(kind: pa.ListType | pa.MapType) -> pa.DataType:
    """Type of the items of a list, or of the values of a map."""
    return kind.item_type if types.is_map(kind) else kind.value_type


def with_content_type(kind: pa.ListType | pa.MapType, content: pa.DataType) -> pa.DataType:
    """The same list with items of another type, or the same map with values of another type."""
    if types.is_map(kind):
        return pa.map_(kind.key_field, kind.item_field.with_type(content))
    return pa.list_(kind.value_field.with_type(content))


def aliases(field: pa.Field) -> list[str]:
    """Earlier names of a field."""
    text: str = (field.metadata or {}).get(ALIASES, b"").decode()
    return text.split(",") if text else []
