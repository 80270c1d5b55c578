"""The types of columns: which of them holds the values of which type of a field, and what they contain."""

import pyarrow as pa
from pyarrow import types

# Readers of Delta refuse a table whose columns are nested too deep. The schema in the log has at most 127 levels of
# JSON (three for a struct), that of a Parquet file 100 levels (two for a list), and Arrow hands over 64 (two for a
# map). With these costs one sum keeps all three limits.
STRUCT_COST, LIST_COST, MAP_COST = 6, 5, 8
MAX_NESTING = 246
TYPE = b"type"
"""The key of the metadata of a union's member that has the names of its type."""


def nesting(kind: pa.DataType) -> int:
    """The cost of the nesting in the type of a column; readers of Delta allow MAX_NESTING.

    >>> nesting(pa.int64()), nesting(pa.list_(pa.struct([("id", pa.int64())])))
    (0, 11)
    """
    if types.is_struct(kind):
        return STRUCT_COST + max((nesting(member.type) for member in kind), default=0)
    if types.is_list(kind) or types.is_map(kind):
        return (MAP_COST if types.is_map(kind) else LIST_COST) + nesting(content_type(kind))
    return 0


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
    return is_promotion(column, field) or bool(column.equals(field))


def is_promotion(column: pa.DataType, field: pa.DataType) -> bool:
    """Whether a column takes the values of a field although it has another type than the field."""
    return bool(
        (types.is_float64(column) and types.is_int64(field))
        or (types.is_string(column) and types.is_binary(field))
        or (types.is_binary(column) and types.is_string(field))
    )


def is_union(kind: pa.DataType) -> bool:
    """Whether a type is that of a union of several types: a struct of `member0`, `member1`, as Spark's from_avro.

    A record can have fields with these names, too. But only members of unions say which type they have.
    """
    if not types.is_struct(kind):
        return False
    has_names = all(member.name == f"member{index}" for index, member in enumerate(kind))
    return has_names and any(TYPE in (member.metadata or {}) for member in kind)


def content_field(kind: pa.ListType | pa.MapType) -> pa.Field:
    """The items of a list, or the values of a map, as a field."""
    return kind.item_field if types.is_map(kind) else kind.value_field


def content_type(kind: pa.ListType | pa.MapType) -> pa.DataType:
    """Type of the items of a list, or of the values of a map."""
    return kind.item_type if types.is_map(kind) else kind.value_type


def with_content_type(kind: pa.ListType | pa.MapType, content: pa.DataType) -> pa.DataType:
    """The same list with items of another type, or the same map with values of another type."""
    if types.is_map(kind):
        return pa.map_(kind.key_field, kind.item_field.with_type(content))
    return pa.list_(kind.value_field.with_type(content))
