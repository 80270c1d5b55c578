"""The columns of an Avro schema.

    Avro                                      column
    boolean                                   bool
    int, long                                 long
    float, double                             double
    bytes, fixed                              binary
    string, enum, uuid                        string
    decimal                                   decimal(38, scale)
    date                                      date32
    time-millis, time-micros                  long: microseconds since midnight
    io.debezium.time.* in `connect.name`      as the logical type of that unit: date, time or local timestamp
    timestamp-*                               timestamp[us, UTC]
    local-timestamp-*                         timestamp[us]
    duration                                  struct of months, days and milliseconds, each a long
    array, map, record                        list, map, struct
    union of null and one type                as the type
    union of int and long, float and double   long, double
    another union                             struct of member0, member1 ...: one for each type but null; columns of
                                              these names if the union is the whole schema
    recursive reference, and what is nested   string: JSON
    deeper than readers of Delta allow
    record without fields, in a union         string: {}, because the union says whether it is there

Nanoseconds are cut to microseconds, towards the past. A date or time is refused if it is outside of the years 1 to
9999, and a decimal if it needs more than 38 digits. A field that is always null has no column, and neither has a record
without fields that is always there.

A schema whose type is not a record has one column, `value`; its null is a row of nulls.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from kafka_io.errors import InvalidSchema
from kafka_io.values.avro.schema import (
    Array,
    AvroType,
    Decimal,
    FixedBytes,
    Map,
    Primitive,
    RecordType,
    Union,
    type_names,
)
from kafka_io.values.column_types import LIST_COST, MAP_COST, MAX_NESTING, STRUCT_COST, TYPE
from kafka_io.values.columns import described, with_connect

VALUE = "value"
"""Column of a schema that is not a record."""

DURATION = pa.struct([(name, pa.int64()) for name in ("months", "days", "milliseconds")])
_MAX_NODES = 10_000
_PRIMITIVES = {
    "boolean": pa.bool_(),
    "int": pa.int64(),
    "long": pa.int64(),
    "float": pa.float64(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.int64(),
    "time-micros": pa.int64(),
    "time-nanos": pa.int64(),
    **{f"timestamp-{unit}": pa.timestamp("us", "UTC") for unit in ("millis", "micros", "nanos")},
    **{f"local-timestamp-{unit}": pa.timestamp("us") for unit in ("millis", "micros", "nanos")},
    "uuid": pa.string(),
}
_NULL = Primitive("null")
# Spark's from_avro merges the same types.
_MERGED = (frozenset({Primitive("int"), Primitive("long")}), frozenset({Primitive("float"), Primitive("double")}))


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeNode:
    """A type where it stands in a schema, with the type of its column.

    Args:
        avro: the type.
        column: the type of the column; None for what is always null.
        inside: the types directly inside it: of a record's fields, of items or values, of a union's branches.
        is_json: its value is kept as JSON, because the type contains this place, or is nested too deep.
        record_fields: of a record, its fields as Arrow fields, also those without a column.
    """

    avro: AvroType
    column: pa.DataType | None
    inside: "tuple[TypeNode, ...]" = ()
    is_json: bool = False
    record_fields: tuple[pa.Field, ...] = field(default=(), repr=False)

    @property
    def values(self) -> "list[TypeNode]":
        """The branches of a union except null."""
        return [branch for branch in self.inside if branch.avro != _NULL]

    @property
    def type_names(self) -> tuple[str, ...]:
        """The names of the type; of a union with null those of its only other type."""
        if isinstance(self.avro, Union):
            return self.values[0].type_names if len(self.values) == 1 else ()
        return type_names(self.avro)

    @property
    def is_connect(self) -> bool:
        """Whether only Debezium's name says what its numbers mean; of a union with null the same of its other type."""
        if isinstance(self.avro, Union):
            return len(self.values) == 1 and self.values[0].is_connect
        return isinstance(self.avro, Primitive) and self.avro.is_connect

    @property
    def is_struct_of_members(self) -> bool:
        """Whether it is a union that becomes a struct of `member0`, `member1` ..."""
        return not self.is_json and _has_members(self.avro)


def columns_of_avro(schema: AvroType) -> pa.Schema:
    """The columns of a schema. Their metadata are described in `kafka_io.values.columns`.

    >>> from kafka_io import parse_avro
    >>> columns_of_avro(parse_avro('{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}'))
    id: int64

    Raises:
        InvalidSchema: the schema has more than 10,000 fields.
    """
    return columns_of_node(type_node(schema))


def columns_of_node(root: TypeNode) -> pa.Schema:
    """The columns of a schema's outermost type."""
    if root.column is None:
        return pa.schema([])
    return pa.schema(list(root.column) if has_own_columns(root) else [field_of(VALUE, root)])


def has_own_columns(root: TypeNode) -> bool:
    """Whether the fields of a schema are columns. Otherwise it has the single column `value`."""
    return root.column is not None and pa.types.is_struct(root.column)


def type_node(schema: AvroType) -> TypeNode:
    """A schema as a tree without cycles.

    Raises:
        InvalidSchema: the schema has more than 10,000 fields.
    """
    return _Unfolding().root(schema)


def field_of(name: str, node: TypeNode) -> pa.Field:
    """A field of this name and type. A type that is always null is a text, because Delta has no type for null."""
    field = described(name, node.column if node.column is not None else pa.string(), type_names=node.type_names)
    return with_connect(field) if node.is_connect else field


class _Unfolding:
    """Copies a type to each place that uses it, within a limit, because nested types multiply the copies."""

    def __init__(self) -> None:
        self._nodes = 0
        self._open: list[AvroType] = []

    def root(self, avro: AvroType) -> TypeNode:
        """The outermost type. If its members are columns, they are not nested."""
        is_row = isinstance(avro, RecordType) or _has_members(avro)
        return self.node(avro, MAX_NESTING + (STRUCT_COST if is_row else 0))

    def node(self, avro: AvroType, room: int) -> TypeNode:
        """A type at a place that has so much room for nesting (see `column_types`)."""
        self._nodes += 1
        if self._nodes > _MAX_NODES:
            raise InvalidSchema(f"the Avro schema has more than {_MAX_NODES} fields")
        room -= _cost(avro)
        if room < 0 or avro in self._open:
            return TypeNode(avro=avro, column=pa.string(), is_json=True)
        match avro:
            case Array(items):
                inside = self.node(items, room)
                return TypeNode(avro=avro, column=pa.list_(field_of("element", inside)), inside=(inside,))
            case Map(values):
                inside = self.node(values, room)
                return TypeNode(avro=avro, column=pa.map_(pa.string(), field_of("value", inside)), inside=(inside,))
            case Union(branches):
                return self._union(avro, tuple(self._branch(branch, room) for branch in branches))
            case RecordType():
                return self._record(avro, room)
        return TypeNode(avro=avro, column=_leaf_column(avro))

    def _branch(self, avro: AvroType, room: int) -> TypeNode:
        """A type of a union. A record without columns is one text, which says that it is there (fault A12)."""
        node = self.node(avro, room)
        return replace(node, column=pa.string()) if node.column is None and isinstance(avro, RecordType) else node

    def _union(self, avro: Union, branches: tuple[TypeNode, ...]) -> TypeNode:
        node = TypeNode(avro=avro, column=None, inside=branches)
        values = node.values
        if node.is_struct_of_members:
            members = [_member(index, value) for index, value in enumerate(values)]
            return TypeNode(avro=avro, column=pa.struct(members), inside=branches)
        return TypeNode(avro=avro, column=values[0].column if values else None, inside=branches)

    def _record(self, record: RecordType, room: int) -> TypeNode:
        self._open.append(record)
        inside = tuple(self.node(field.type, room) for field in record.fields)
        self._open.pop()
        fields = tuple(_fields(record, inside))
        with_column = [field for field, node in zip(fields, inside, strict=True) if node.column is not None]
        column = pa.struct(with_column) if with_column else None
        return TypeNode(avro=record, column=column, inside=inside, record_fields=fields)


def _leaf_column(avro: AvroType) -> pa.DataType | None:
    """The type of the column of a type without types inside it; None for null."""
    match avro:
        case Primitive(name, logical):
            return _LOGICAL.get(logical, _PRIMITIVES.get(name))
        case Decimal(scale):
            return pa.decimal128(38, scale)
        case FixedBytes(_, logical):
            return {"duration": DURATION, "uuid": pa.string()}.get(logical, pa.binary())
        case _:
            return pa.string()  # an enum


def _cost(avro: AvroType) -> int:
    """The cost of the nesting that the column of a type adds; see `column_types`."""
    match avro:
        case Array():
            return LIST_COST
        case Map():
            return MAP_COST
        case RecordType():
            return STRUCT_COST
        case FixedBytes(_, "duration"):
            return STRUCT_COST
        case _:
            return STRUCT_COST if _has_members(avro) else 0


def _has_members(avro: AvroType) -> bool:
    """Whether a type is a union that becomes a struct of `member0`, `member1` ..."""
    values = [branch for branch in avro.branches if branch != _NULL] if isinstance(avro, Union) else []
    return len(values) > 1 and frozenset(values) not in _MERGED


def _fields(record: RecordType, inside: tuple[TypeNode, ...]) -> Iterator[pa.Field]:
    for record_field, node in zip(record.fields, inside, strict=True):
        field = described(
            record_field.name,
            node.column or pa.null(),
            comment=record_field.doc,
            aliases=record_field.aliases,
            type_names=node.type_names,
            tags=record_field.tags,
        )
        yield with_connect(field) if node.is_connect else field


def _member(index: int, node: TypeNode) -> pa.Field:
    """A member of a union, with the names of its type, or with the name of its kind, such as `array`."""
    names = node.type_names or (_kind(node.avro),)
    return field_of(f"member{index}", node).with_metadata({TYPE: ",".join(names).encode()})


def _kind(avro: AvroType) -> str:
    """The name in schemas of a kind of types that have no names."""
    match avro:
        case Primitive(name):
            return name
        case Decimal():
            return "bytes"
        case _:
            return type(avro).__name__.lower()
