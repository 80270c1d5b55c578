"""Columns of JSON values without a declared schema: they are inferred from a sample, and later only grow.

The type of a key is the narrowest that holds all its values in the sample: bool, long, decimal(38, 0) for integers
beyond a long, double, string, list, struct. A text stays a text, even if it looks like a date, because the next value
may not look so. Keys whose values have several types become JSON text, and so do objects with very many keys, as they
are mostly maps.

Null, {} and [] say nothing about the type of a key: a key that has no column gets none for them. But a sample keeps {}
and [] as empty types, a struct without members and a list of nulls, because they are values. If a key has columns and
none of them holds its {} or [], it gets a column of JSON text.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isinf
from typing import Any

import pyarrow as pa
from pyarrow import types

from kafka_io.values.columns import ColumnNames, aliases, field_name, new_column
from kafka_io.values.json.reading import JSON_READING, JsonReading, json_field, json_text, reading_of

MAX_VALUES, MAX_BYTES = 1_000, 4 << 20
"""Maximum number of values in a sample, and of their bytes. A larger value is a sample of its own."""
_MAX_MEMBERS, _MAX_DEPTH = 256, 16
DECODED_DEPTH = 128
"""How many objects and arrays may be inside each other, so that the decoder takes the document."""
_INT64 = range(-(1 << 63), 1 << 63)
_DECIMAL_LIMIT = 10**38
_BEFORE_TYPED: Mapping[JsonReading, pa.DataType] = {
    JsonReading.DECIMAL_BYTES: pa.binary(),
    JsonReading.TIME_MILLIS: pa.int64(),
    JsonReading.TIME_MICROS: pa.int64(),
    JsonReading.TIME_NANOS: pa.int64(),
}
"""The types of the columns into which versions up to 0.6 put the values with these readings."""
_EXACT = pa.uint64()
"""The type in a sample of integers that fit a long, but that a double would round. Columns of them are long."""
_MOST_DIGITS = 18  # of an integer that the decoder compares with its double
_INTEGERS: Sequence[pa.DataType] = (pa.int64(), _EXACT, pa.decimal128(38, 0))
"""The types of integers: each holds those before it."""
_NUMBERS = (*_INTEGERS, pa.float64())


def columns_of_sample(values: Iterable[bytes | None]) -> pa.Schema:
    """The columns for a sample of values; those that are no JSON object are ignored.

    >>> columns_of_sample([b'{"id": 1, "name": "a"}', b'{"id": 2.5, "other": null}'])
    id: double
    name: string
    """
    return pa.schema(without_empty(fields_of_sample(values)))


def fields_of_sample(values: Iterable[bytes | None]) -> list[pa.Field]:
    """The fields of a sample of values, also those of keys that only have {} and [], with empty types."""
    return fields_of_documents(_documents(values))


def fields_of_documents(documents: Iterable[Mapping[str, Any]]) -> list[pa.Field]:
    """The same for objects that were read already."""
    seen = _Seen()
    for document in documents:
        seen.add(document, 0)
    return seen.member_fields()


def _documents(values: Iterable[bytes | None]) -> Iterator[dict[str, Any]]:
    """The objects of the values that are no larger than a sample."""
    size = 0
    for count, value in enumerate(values):
        size += len(value or b"")
        if count >= MAX_VALUES or (count and size > MAX_BYTES):
            break
        document = read_object(value)
        if document is not None and not _is_too_deep(document):
            yield document


def grow_by_sample(columns: pa.Schema, values: Iterable[bytes | None]) -> pa.Schema:
    """The columns, and new ones for what a sample has and no column holds. No column changes its type.

    >>> import pyarrow as pa
    >>> grow_by_sample(pa.schema({"id": pa.int64()}), [b'{"id": {}, "other": {}}'])
    id: int64
    id_2: string
      -- field metadata --
      json: 'text'
      field: 'id'
    """
    return grow_by_fields(columns, fields_of_sample(values))


def grow_by_fields(columns: pa.Schema, fields: Iterable[pa.Field]) -> pa.Schema:
    """The columns, and new ones for fields of a sample that no column holds. No column changes its type.

    A field whose key has a column that cannot hold it gets another column.

    >>> grow_by_fields(pa.schema({"price": pa.int64()}), [pa.field("price", pa.float64())]).names
    ['price', 'price_2']
    """
    return pa.schema(_grown(list(columns), fields), columns.metadata)


def merged_fields(samples: Iterable[Iterable[pa.Field]]) -> list[pa.Field]:
    """The fields that one sample with the values of all these samples would have."""
    merged: dict[str, pa.Field] = {}
    for new in (new for fields in samples for new in fields):
        merged[new.name] = _merged(merged[new.name], new) if new.name in merged else new
    return list(merged.values())


def without_empty(fields: Iterable[pa.Field]) -> list[pa.Field]:
    """The fields of a sample without empty types."""
    return [solid for field in fields if (solid := _solid(field)) is not None]


def split_sample(values: pa.BinaryArray, rows: Iterable[int]) -> Iterator[list[bytes]]:
    """The values of these rows in lists that are small enough to be a sample each."""
    sample, size = list[bytes](), 0
    for row in rows:
        value = values[row].as_py()
        if sample and (len(sample) == MAX_VALUES or size + len(value) > MAX_BYTES):
            yield sample
            sample, size = [], 0
        sample.append(value)
        size += len(value)
    if sample:
        yield sample


def read_object(value: bytes | None) -> dict[str, Any] | None:
    """The value as a JSON object; None if it is not a JSON object."""
    try:
        document = json.loads((value or b"").decode(), parse_constant=_refuse)
        json.dumps(document, ensure_ascii=False).encode()  # refuses lone surrogates
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _is_too_deep(document: dict[str, Any]) -> bool:
    """Whether the decoder refuses a document, whatever the columns are. Then its keys need none (fault Y04)."""
    level: list[Any] = [document]
    for _ in range(DECODED_DEPTH):
        level = [inner for value in level for inner in _contents(value) if isinstance(inner, (dict, list))]
        if not level:
            return False
    return True


def _contents(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def has_key_twice(value: bytes) -> bool:
    """Whether an object in a JSON document has a key twice. The decoder refuses that once the key has a column."""

    def check(members: list[tuple[str, Any]]) -> dict[str, Any]:
        document = dict(members)
        if len(document) < len(members):
            raise _KeyTwice
        return document

    try:
        json.loads(value, object_pairs_hook=check)
    except _KeyTwice:
        return True
    except (ValueError, RecursionError):
        return False
    return False


class _KeyTwice(Exception):
    """A key of an object occurs twice."""


def _refuse(constant: str) -> None:
    raise ValueError(constant)


_NOTHING = pa.field("item", pa.null())
"""The items of arrays that have none, or only nulls."""


@dataclass(slots=True)
class _Seen:
    """The types that the values of one key had."""

    scalars: set[pa.DataType] = field(default_factory=set)
    members: dict[str, "_Seen"] = field(default_factory=dict)
    items: "_Seen | None" = None
    is_object: bool = False
    is_list: bool = False
    is_deep: bool = False
    """Whether only JSON text holds a value: it is nested too deep, or a number is too large for every other column."""

    def add(self, value: Any, depth: int) -> None:
        """Add a value, `depth` levels deep in its document."""
        if depth > _MAX_DEPTH or _is_too_large(value):
            self.is_deep = True
        elif isinstance(value, dict):
            self.is_object = True
            for name, member in value.items():
                self.members.setdefault(name, _Seen()).add(member, depth + 1)
        elif isinstance(value, list):
            self.is_list = True
            self.items = self.items or _Seen()
            for item in value:
                self.items.add(item, depth + 1)
        elif value is not None:
            self.scalars.add(_scalar(value))

    def field(self, name: str) -> pa.Field | None:
        """The field for the values; None if all of them are null."""
        kinds = bool(self.scalars) + self.is_object + self.is_list
        widest = _widest(self.scalars) if self.scalars else None
        if self.is_deep or kinds > 1 or (self.scalars and widest is None):
            return json_text(name)
        if widest is not None:
            return json_field(name, widest)
        if self.items is not None:
            return list_of(name, self.items.field("item") or _NOTHING)
        if len(self.members) > _MAX_MEMBERS:
            return json_text(name)
        return json_field(name, pa.struct(self.member_fields())) if self.is_object else None

    def member_fields(self) -> list[pa.Field]:
        """The fields for the members of the values, which are objects."""
        return [field for key, seen in self.members.items() if (field := seen.field(key)) is not None]


def _is_too_large(value: Any) -> bool:
    """Whether a value is an integer of more than 38 digits, or a number that no double holds."""
    return (isinstance(value, int) and abs(value) >= _DECIMAL_LIMIT) or (isinstance(value, float) and isinf(value))


def _scalar(value: Any) -> pa.DataType:
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, str):
        return pa.string()
    if isinstance(value, float):
        return pa.float64()
    if value in _INT64:
        return pa.int64() if _is_double(value) else _EXACT
    return pa.decimal128(38, 0)


def _is_double(value: int) -> bool:
    """Whether a double holds an integer; the decoder asks the same."""
    return len(str(abs(value))) <= _MOST_DIGITS and int(float(value)) == value


def _widest(kinds: Collection[pa.DataType]) -> pa.DataType | None:
    """The only type that holds all values of these types; None if only JSON text does."""
    if len(kinds) == 1:
        return next(iter(kinds))
    if all(kind in _INTEGERS for kind in kinds):
        return max(kinds, key=_INTEGERS.index)
    return pa.float64() if {*kinds} == {pa.int64(), pa.float64()} else None


def list_of(name: str, item: pa.Field, comment: str = "") -> pa.Field:
    """A list, or JSON text if its type does not say how its items are read: a table remembers no metadata of items."""
    if reading_of(item) is not None:
        return json_text(name, comment)
    return json_field(name, pa.list_(item), None, comment)


def _solid(field: pa.Field) -> pa.Field | None:
    """The field without members of empty types; None if its own type is empty."""
    if types.is_null(field.type):
        return None
    if field.type == _EXACT:
        return field.with_type(pa.int64())
    if types.is_list(field.type):
        item = _solid(field.type.value_field)
        return None if item is None else field.with_type(pa.list_(item))
    if types.is_struct(field.type):
        members = without_empty(field.type)
        return field.with_type(pa.struct(members)) if members else None
    return field


def _merged(left: pa.Field, right: pa.Field) -> pa.Field:
    """The field that holds the values of two samples."""
    for holder, other in ((left, right), (right, left)):
        if _solid(other) is None and _holds(holder, other):
            return holder
    is_same_scalar = left.type == right.type and not types.is_nested(left.type)
    if reading_of(left) is JsonReading.TEXT or (is_same_scalar and reading_of(left) is reading_of(right)):
        return left
    if reading_of(left) is None and reading_of(right) is None:
        if types.is_struct(left.type) and types.is_struct(right.type):
            return left.with_type(pa.struct(merged_fields([left.type, right.type])))
        if types.is_list(left.type) and types.is_list(right.type):
            return list_of(left.name, _merged(left.type.value_field, right.type.value_field))
        widest = _widest({left.type, right.type})
        if left.type in _NUMBERS and right.type in _NUMBERS and widest is not None:
            return left.with_type(widest)
    return left if left.equals(right, check_metadata=True) else json_text(left.name)


class _Keys:
    """The places of the columns of each key, in order: those of its name, and those with it as an earlier name."""

    def __init__(self, columns: Iterable[pa.Field]) -> None:
        self._places = defaultdict[str, list[int]](list)
        self._count = 0
        for column in columns:
            self.add(column)

    def add(self, column: pa.Field) -> None:
        """Add the next column."""
        for key in {field_name(column), *aliases(column)}:
            self._places[key].append(self._count)
        self._count += 1

    def places(self, key: str) -> Sequence[int]:
        """The places of the columns of a key."""
        return self._places.get(key, ())


def _grown(columns: list[pa.Field], fields: Iterable[pa.Field]) -> list[pa.Field]:
    """The columns, with everything added that the fields need."""
    keys, names = _Keys(columns), ColumnNames(columns)
    for new in fields:
        place = _place(columns, keys, new)
        if place is None:
            wanted = _wanted(keys, new)
            if wanted is not None:
                columns.append(new_column(wanted, names))
                keys.add(columns[-1])
        elif not _holds(columns[place], new):
            columns[place] = columns[place].with_type(_grown_type(columns[place].type, new.type))
    return columns


def _wanted(keys: _Keys, new: pa.Field) -> pa.Field | None:
    """The column that a field needs which no column holds; None if it is empty, and its key has no column yet."""
    solid = _solid(new)
    return json_text(new.name) if solid is None and keys.places(new.name) else solid


def _place(columns: Sequence[pa.Field], keys: _Keys, new: pa.Field) -> int | None:
    """Place of the first column that holds a field, or can get members for it: a decoder puts the values there."""
    fitting = (
        place
        for place in keys.places(new.name)
        if _can_grow(columns[place].type, new.type) or _holds(columns[place], new)
    )
    return next(fitting, None)


def _can_grow(column: pa.DataType, new: pa.DataType) -> bool:
    """Whether a column can get members that let it hold a field."""
    if types.is_list(column) and types.is_list(new):
        return _can_grow(column.value_type, new.value_type)
    return bool(types.is_struct(column) and types.is_struct(new))


def _grown_type(column: pa.DataType, new: pa.DataType) -> pa.DataType:
    if types.is_list(column):
        return pa.list_(column.value_field.with_type(_grown_type(column.value_type, new.value_type)))
    return pa.struct(_grown(list(column), new))


def _holds(column: pa.Field, new: pa.Field) -> bool:
    """Whether a column holds all values of a field."""
    if reading_of(column) is JsonReading.TEXT or types.is_null(new.type):
        return True
    if types.is_struct(new.type) and types.is_struct(column.type):
        members = list(column.type)
        keys = _Keys(members)
        places = [(_place(members, keys, member), member) for member in new.type]
        return all(place is not None and _holds(members[place], member) for place, member in places)
    if types.is_list(new.type) and types.is_list(column.type):
        return _holds(column.type.value_field, new.type.value_field)
    if types.is_struct(new.type) and types.is_map(column.type):
        return all(_holds(column.type.item_field, member) for member in new.type)
    return _reads(column, new)


def _reads(column: pa.Field, new: pa.Field) -> bool:
    """Whether a column reads the scalars of an inferred field."""
    same_type = types.is_timestamp(column.type) if types.is_timestamp(new.type) else column.type == new.type
    if same_type and reading_of(column) is reading_of(new):
        return True
    if JSON_READING in (new.metadata or {}):
        # A column of an earlier version keeps the bytes or the number of what has a type of its own now.
        kind = _BEFORE_TYPED.get(reading_of(new) or JsonReading.TEXT)
        return column.type == kind and reading_of(column) is None
    # The decimals of samples have no digits after the point; others are declared and also read texts.
    is_declared_decimal = types.is_decimal(column.type) and column.type.scale > 0
    if types.is_string(new.type):
        is_text = types.is_string(column.type) or types.is_binary(column.type) or types.is_temporal(column.type)
        return is_declared_decimal or (is_text and reading_of(column) is None)
    if types.is_temporal(column.type):
        return new.type in (pa.int64(), _EXACT) and reading_of(column) is not None
    if new.type in _NUMBERS and is_declared_decimal:
        return True
    are_integers = new.type in _INTEGERS and column.type in _INTEGERS
    is_wider = are_integers and _INTEGERS.index(column.type) >= _INTEGERS.index(new.type)
    is_double = new.type == pa.int64() and column.type == pa.float64()
    return bool(column.type == new.type) or is_wider or is_double or (are_integers and new.type == _EXACT)
