"""The columns of a table in Iceberg's words: types with field ids, and a property for what Iceberg has no word for.

Iceberg keeps a comment for each column. Penstock also keeps which field of the values a column has, and how it is read.
So a table property has the columns as Penstock describes them. A column that another program has added is not there.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import create_mapping_from_schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from pipelines.layout.delta_schema import DeltaField

COLUMNS = "penstock.columns"
"""The table property with the columns as Penstock describes them."""
NAME_MAPPING = "schema.name-mapping.default"
"""The table property by which readers find the columns of data files, which have names and no field ids."""
_SIMPLE: Mapping[str, IcebergType] = {
    "boolean": BooleanType(),
    "byte": IntegerType(),
    "short": IntegerType(),
    "integer": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "binary": BinaryType(),
    "date": DateType(),
    "timestamp": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
}


class _Ids:
    """Gives out field ids: those of columns and members that exist stay, new ones follow the last id of the table."""

    def __init__(self, present: Schema | None, last: int) -> None:
        self._known = (
            {} if present is None else {name: present.find_field(name).field_id for name in present.column_names}
        )
        self.last = last

    def of(self, path: str) -> int:
        """The id of the column or member with this path."""
        if path not in self._known:
            self.last += 1
            self._known[path] = self.last
        return self._known[path]


def iceberg_schema(fields: Iterable[DeltaField], present: Schema | None = None, last_id: int = 0) -> Schema:
    """The schema with these columns. Those that are `present` in the table keep their ids."""
    ids = _Ids(present, last_id)
    columns = [_column(field, ids, "") for field in fields]
    known = {column.name for column in columns}
    others = [field for field in present.fields if field.name not in known] if present else []
    return Schema(*columns, *others, schema_id=0 if present is None else present.schema_id + 1)


def _column(field: DeltaField, ids: _Ids, above: str) -> NestedField:
    path = f"{above}{field['name']}"
    own = ids.of(path)
    return NestedField(
        field_id=own,
        name=str(field["name"]),
        field_type=_type(field["type"], ids, path),
        required=False,
        doc=(field.get("metadata") or {}).get("comment"),
    )


def _type(kind: Any, ids: _Ids, path: str) -> IcebergType:
    if isinstance(kind, str):
        if kind.startswith("decimal("):
            precision, scale = map(int, kind.removeprefix("decimal(").removesuffix(")").split(","))
            return DecimalType(precision, scale)
        return _SIMPLE[kind]
    if kind["type"] == "struct":
        return StructType(*(_column(member, ids, f"{path}.") for member in kind["fields"]))
    if kind["type"] == "array":
        own = ids.of(f"{path}.element")
        return ListType(
            element_id=own, element_type=_type(kind["elementType"], ids, f"{path}.element"), element_required=False
        )
    key, value = ids.of(f"{path}.key"), ids.of(f"{path}.value")
    return MapType(
        key_id=key,
        key_type=_type(kind["keyType"], ids, f"{path}.key"),
        value_id=value,
        value_type=_type(kind["valueType"], ids, f"{path}.value"),
        value_required=False,
    )


def column_properties(schema: Schema, fields: Sequence[DeltaField]) -> Mapping[str, str]:
    """The table properties that belong to a schema."""
    return {
        COLUMNS: json.dumps(list(fields)),
        NAME_MAPPING: create_mapping_from_schema(schema).model_dump_json(),
    }
