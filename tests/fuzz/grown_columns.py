"""The row of an Avro value in columns that grew from several schemas, made from its row in the columns of its own.

Which column a field goes into is a rule of `kafka_io.values.columns`, which has tests of its own. What is checked here
is that each field has a column, and that its value is in that column and in no other.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from kafka_io.values.column_types import content_field, is_union
from kafka_io.values.columns import assign, assign_members
from tests.oracles import avro as oracle

_PART = {"type": "part of a duration"}


class GrownColumns:
    """Puts the values of one schema into the columns.

    Args:
        schema: the writer's schema.
        own: the columns of this schema alone.
        columns: columns that hold all its fields.
    """

    def __init__(self, schema: oracle.Schema, own: pa.Schema, columns: pa.Schema) -> None:
        self._schema = schema
        self._own = list(own)
        self._columns = list(columns)

    def row(self, body: bytes) -> dict[str, Any] | None:
        """The row of a value; None if the value is refused."""
        try:
            own = self._schema.row(body) or {}
            return self._struct(own, self._own, self._types_of_columns(), self._columns)
        except oracle.Refused:
            return None

    def _types_of_columns(self) -> Mapping[str, Any]:
        """The type of each field of the outermost schema, by the name that the field has as a column."""
        root = self._schema.resolved(self._schema.root)
        values = [branch for branch in root if branch != "null"] if isinstance(root, list) else [root]
        if len(values) > 1 and self._own[0].name == "member0":
            return {f"member{index}": value for index, value in enumerate(values)}
        value = self._schema.resolved(values[0]) if values else None
        # A record without fields is a text in one column, if a union says whether it is there (fault A12).
        is_struct = value and (value.get("fields") or value.get("logicalType") == "duration")
        return _types_of_members(value) if is_struct else {"value": root}

    def _struct(
        self, value: Mapping[str, Any], own: Sequence[pa.Field], types: Mapping[str, Any], columns: Sequence[pa.Field]
    ) -> dict[str, Any]:
        """The members of a struct with these columns."""
        members: dict[str, Any] = dict.fromkeys(column.name for column in columns)
        places = assign(own, columns)
        assert None not in places, f"no column holds {own[places.index(None)]}"
        assert len(set(places)) == len(places)
        for field, place in zip(own, places, strict=True):
            assert place is not None
            column = columns[place]
            members[column.name] = self._value(value.get(field.name), field, types[field.name], column.type)
        return members

    def _value(self, value: Any, own: pa.Field, schema: Any, column: pa.DataType) -> Any:  # noqa: PLR0911 - as many kinds
        """A value in a column of another type."""
        schema = self._schema.resolved(schema)
        if value is None:
            return None
        if schema == _PART and not pa.types.is_int64(column):
            raise oracle.Refused("a part of a duration goes into no column of doubles or of a union")
        if isinstance(schema, list):
            return self._of_union(value, own, [branch for branch in schema if branch != "null"], column)
        if is_union(column):
            return self._member(value, [own.with_name("")], 0, schema, column)
        if pa.types.is_struct(column):
            return self._struct(value, list(own.type), _types_of_members(schema), list(column))
        if pa.types.is_list(column):
            item_field = content_field(own.type)
            return [self._value(item, item_field, schema["items"], column.value_type) for item in value]
        if pa.types.is_map(column):
            item_field = content_field(own.type)
            return [(key, self._value(item, item_field, schema["values"], column.item_type)) for key, item in value]
        return _leaf(value, schema, column)

    def _of_union(self, value: Any, own: pa.Field, branches: Sequence[Any], column: pa.DataType) -> Any:
        if not is_union(own.type):  # of one type besides null, or of two numbers
            return self._value(value, own, branches[0], column)
        chosen = [index for index, member in enumerate(value.values()) if member is not None]
        if not chosen:  # the value of a type that has only nulls
            return dict.fromkeys(field.name for field in column)
        [index] = chosen
        return self._member(value[f"member{index}"], list(own.type), index, branches[index], column)

    def _member(self, value: Any, types: Sequence[pa.Field], index: int, schema: Any, column: pa.DataType) -> Any:
        """A value in the column of a union. It has the type with this index of those that its union has."""
        place = assign_members(types, list(column))[index]
        assert place is not None, f"no member of {column} holds {types[index].type}"
        members: dict[str, Any] = dict.fromkeys(other.name for other in column)
        return {**members, column.field(place).name: self._value(value, types[index], schema, column.field(place).type)}


def _types_of_members(schema: Any) -> Mapping[str, Any]:
    """The types of the fields of a record, or of the parts of a duration."""
    if schema["type"] == "record":
        return {field["name"]: field["type"] for field in schema["fields"]}
    return dict.fromkeys(("months", "days", "milliseconds"), _PART)


def _leaf(value: Any, schema: Any, column: pa.DataType) -> Any:
    if pa.types.is_float64(column):
        if isinstance(value, int) and int(float(value)) != value:
            raise oracle.Refused("a double would round the number")
        return float(value)
    if pa.types.is_binary(column) and isinstance(value, str):
        is_fixed_uuid = schema["type"] == "fixed" and schema.get("logicalType") == "uuid"
        return uuid.UUID(value).bytes if is_fixed_uuid else value.encode()
    if pa.types.is_string(column) and isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise oracle.Refused("text") from error
    return value
