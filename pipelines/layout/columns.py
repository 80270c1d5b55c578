"""The rules by which the columns of a typed table grow, and by which a data file fits the table of its commit.

Which column a field goes into is decided in `kafka_io.values.columns`. This module adds the rules of a table: it never
loses a column, and no field takes the name of one of Penstock's own columns. The column of such a field has `value`
before the name: `_error` becomes `value_error`. All functions are pure. The table's schema in the Delta log is the only
memory.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from kafka_io.values.column_types import content_type, with_content_type
from kafka_io.values.columns import FIELD, ColumnNames, described, field_name, grow, new_column

RESERVED_PREFIX = "_kafka_"
KEY_PREFIX = "_kafka_key_"
"""The prefix of the names of columns for fields of the keys."""
HEADER_PREFIX = "_kafka_header_"
"""The prefix of the names of columns for headers."""
SCHEMA_ID_COLUMN = "_kafka_schema_id"
VALUE_SCHEMA_HEADER, KEY_SCHEMA_HEADER = "__value_schema_id", "__key_schema_id"
AZURE_HEADER, AZURE_CONTENT = "content-type", b"avro/binary+"
"""The header that names a schema of Azure's registry, and what is in it before the id."""
"""The headers in which serializers write the id of the schema of a value or of a key."""
_KEY_FIELD = "key."  # the prefix of the name of such a field in the metadata of its column
ERROR_COLUMN = "_error"
RAW_COLUMN = "_raw"
TOMBSTONE_COLUMN = "_tombstone"
_RESERVED = {ERROR_COLUMN, RAW_COLUMN, TOMBSTONE_COLUMN}
NO_COLUMNS = pa.schema([])
_NOT_OF_VALUES = (KEY_PREFIX, HEADER_PREFIX, SCHEMA_ID_COLUMN)


class ColumnConflict(ValueError):
    """A data file has a column that the table has with another type, or for another field."""


Grow = Callable[[pa.Schema, Iterable[pa.Field]], pa.Schema]
"""A function that returns the columns with everything added that the fields need."""


def grown(present: pa.Schema, fields: Iterable[pa.Field], others: Sequence[str] = (), grow: Grow = grow) -> pa.Schema:
    """The `present` columns for fields of a table, with everything added that these fields need.

    `others` are names of further columns of the table, which hold no field.
    """
    # Placeholders reserve the names of the other columns. They are for a field that cannot exist, so no field goes into
    # them.
    occupied = [pa.field(name, pa.null(), metadata={FIELD: b"\0"}) for name in others]
    after = list(grow(pa.schema([*occupied, *present]), fields))
    names = ColumnNames(after)
    for index in range(len(occupied) + len(present), len(after)):
        if _is_reserved(field_name(after[index])):
            after[index] = _renamed(after[index], names)
    return pa.schema(after[len(occupied) :])


def _is_reserved(name: str) -> bool:
    return name.lower() in _RESERVED or name.lower().startswith(RESERVED_PREFIX)


def _renamed(column: pa.Field, names: ColumnNames) -> pa.Field:
    """The column of a field whose own name is reserved. No other column has the new name."""
    name = field_name(column)
    free = new_column(column.with_name(f"value{name}"), names)
    return free.with_metadata({**(column.metadata or {}), FIELD: name.encode()})


def value_columns(columns: pa.Schema) -> pa.Schema:
    """The columns of a table for the fields of the values."""
    return pa.schema([column for column in columns if not column.name.startswith(_NOT_OF_VALUES)])


def key_columns(columns: pa.Schema) -> pa.Schema:
    """The columns of a table for the fields of the keys, without the prefix of their names."""
    return pa.schema([_without_prefix(column) for column in columns if _is_key_column(column)])


def header_columns(names: Iterable[str]) -> pa.Schema:
    """The columns for the headers of these names."""
    return pa.schema(
        [described(HEADER_PREFIX + name, pa.string(), comment=f"the last header {name} as text") for name in names]
    )


def schema_id_columns() -> pa.Schema:
    """The column for the ids of the schemas of values."""
    return pa.schema([described(SCHEMA_ID_COLUMN, pa.int64(), comment="the id of the value's schema in the registry")])


def with_key_prefix(columns: pa.Schema) -> pa.Schema:
    """The inverse of `key_columns`."""
    return pa.schema(
        [
            column.with_name(KEY_PREFIX + column.name).with_metadata(
                {**(column.metadata or {}), FIELD: (_KEY_FIELD + field_name(column)).encode()}
            )
            for column in columns
        ]
    )


def _is_key_column(column: pa.Field) -> bool:
    return bool(column.name.startswith(KEY_PREFIX))


def _without_prefix(column: pa.Field) -> pa.Field:
    name, field = column.name.removeprefix(KEY_PREFIX), field_name(column).removeprefix(_KEY_FIELD)
    others = {key: text for key, text in (column.metadata or {}).items() if key != FIELD}
    own = {} if field == name else {FIELD: field.encode()}
    return column.with_name(name).with_metadata({**others, **own} or None)


def stored_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column for a field of this type.

    Times without a zone are stored as if they were in UTC: the type of Delta that has no zone is a feature of a table,
    and deltalake 1.6 adds further features with it that other readers refuse.
    """
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC")
    if pa.types.is_struct(kind):
        return pa.struct([member.with_type(stored_type(member.type)) for member in kind])
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        return with_content_type(kind, stored_type(content_type(kind)))
    return kind


def rename_warnings(present: pa.Schema, after: pa.Schema) -> Iterator[str]:
    """The warnings about fields for which a load adds a column, or a member of one, of another name."""
    before, others = set(present.names), dict[str, pa.DataType]()
    for column in after:
        name = field_name(column)
        usual = KEY_PREFIX + name.removeprefix(_KEY_FIELD) if _is_key_column(column) else name
        if column.name not in before and column.name != usual:
            why = f"had the type {others[name]} before" if name in others else "has a name that is reserved or taken"
            yield f"the field {name!r} {why}: the new column {column.name} holds it, with the type {column.type}"
        others[name] = column.type
    known = {path for path, _ in _members(present)}
    for path, name in _members(after):
        if path not in known and "\0" in name:
            yield f"the field {name!r} has a NUL in its name: the member {path} of a column holds it"


def _members(fields: Iterable[pa.Field], path: str = "") -> Iterator[tuple[str, str]]:
    """The fields inside these ones: their paths, and the names of the fields that they hold."""
    for field in fields:
        here, kind = f"{path}{field.name}", field.type
        if path:
            yield here, field_name(field)
        while pa.types.is_list(kind) or pa.types.is_map(kind):
            kind = content_type(kind)
        if pa.types.is_struct(kind):
            yield from _members(kind, f"{here}.")


def missing_columns(present: pa.Schema, of_files: pa.Schema, others: Sequence[str] = ()) -> pa.Schema:
    """The columns of data files that a table with the `present` columns lacks, or has with fewer members.

    Raises:
        ColumnConflict: the table has one of them with another type, or for another field.
    """
    by_name = {column.name.casefold(): column for column in present}
    taken = {name.casefold() for name in others}
    missing = []
    for column in of_files:
        present_column = by_name.get(column.name.casefold())
        if column.name.casefold() in taken:
            raise ColumnConflict(f"the table has a column {column.name} of another origin")
        if present_column is None:
            missing.append(column)
            continue
        if (present_column.name, field_name(present_column)) != (column.name, field_name(column)):
            raise ColumnConflict(
                f"the table has a column {present_column.name} for the field {field_name(present_column)}, "
                f"not for {field_name(column)}"
            )
        type_ = _merged(present_column.type, column.type)
        if type_ is None:
            raise ColumnConflict(
                f"the table has a column {present_column.name} of type {present_column.type}, not {column.type}"
            )
        if type_ != present_column.type:
            missing.append(present_column.with_type(type_))
    return pa.schema(missing)


def with_columns(present: pa.Schema, changed: pa.Schema) -> pa.Schema:
    """The columns of a table after these columns were added, or got further members."""
    by_name = {column.name: column for column in present}
    return pa.schema((by_name | {column.name: column for column in changed}).values())


def _merged(present: pa.DataType, of_file: pa.DataType) -> pa.DataType | None:
    """The type that has the members of both types; None if columns of the two types do not fit together.

    Files have their columns by name, so only names count here.
    """
    if pa.types.is_struct(present) and pa.types.is_struct(of_file):
        return _merged_struct(present, of_file)
    for is_container in (pa.types.is_map, pa.types.is_list):
        if is_container(present) and is_container(of_file):
            content = _merged(content_type(present), content_type(of_file))
            return None if content is None else with_content_type(present, content)
    return present if present == of_file else None


def _merged_struct(present: pa.StructType, of_file: pa.StructType) -> pa.DataType | None:
    members = {member.name: member for member in present}
    names = {name.casefold() for name in members}
    for member in of_file:
        present_member = members.get(member.name)
        if present_member is None and member.name.casefold() in names:
            return None
        type_ = member.type if present_member is None else _merged(present_member.type, member.type)
        if type_ is None:
            return None
        members[member.name] = (present_member or member).with_type(type_)
        names.add(member.name.casefold())
    return pa.struct(list(members.values()))
