"""Which columns hold personal values: those that the settings name, and those whose fields have a tag in their schema.

The Delta schema of a table marks these columns, so that everybody who writes a log entry of the table knows them: a
load, a replay, housekeeping, or the update of its state table. The log gets constant bounds of a marked column, and
never a value (see `file_statistics`). A column is marked as a whole if only one of its members is personal.

A path such as `address.contact` leads to a member of a struct. It also leads through lists. The empty path leads to
every field.
"""

from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa

from kafka_io.values.columns import assign, field_name, has_tag
from kafka_io.values.json.inference import list_of
from kafka_io.values.json.reading import json_text
from pipelines.layout.columns import HEADER_PREFIX, KEY_PREFIX

_MARK = b"penstock.personal"
_KEY, _HEADERS = "_kafka_key", "_kafka_headers"
"""The columns with the key's bytes and with all headers. Who names them also means the columns with parts of them."""


def is_personal(column: pa.Field) -> bool:
    """Whether a column is marked."""
    return _MARK in (column.metadata or {})


def with_mark(column: pa.Field, *, personal: bool) -> pa.Field:
    """The column with the mark, or without it."""
    others = {key: text for key, text in (column.metadata or {}).items() if key != _MARK}
    return column.with_metadata({**others, **({_MARK: b"true"} if personal else {})} or None)


def with_changed_marks(missing: Iterable[pa.Field], present: pa.Schema, of_files: pa.Schema) -> pa.Schema:
    """The missing columns of a table, and those `present` columns that new files mark otherwise."""
    marks = {column.name: is_personal(column) for column in of_files}
    changed = {
        column.name: column for column in present if marks.get(column.name, is_personal(column)) != is_personal(column)
    }
    columns = changed | {column.name: column for column in missing}
    return pa.schema([with_mark(column, personal=marks[name]) for name, column in columns.items()])


def paths_of_keys(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths of fields of the key, without the prefix of their columns."""
    return tuple("" if path == _KEY else path.removeprefix(KEY_PREFIX) for path in paths if path.startswith(_KEY))


def paths_of_headers(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths of columns for headers."""
    return tuple("" if path == _HEADERS else path for path in paths if path.startswith((_HEADERS, HEADER_PREFIX)))


def marked(
    columns: pa.Schema,
    paths: Collection[str],
    tags: Collection[str] = (),
    declared: Iterable[Sequence[pa.Field]] = (),
) -> pa.Schema:
    """The columns, of which exactly the personal ones are marked.

    Args:
        columns: the columns.
        paths: the paths of personal fields.
        tags: the tags that make a field personal.
        declared: the fields of each schema, with their tags.
    """
    present = list(columns)
    tagged = {
        place
        for fields in declared
        for field, place in zip(fields, assign(fields, present), strict=True)
        if has_tag(field, tags)
    }
    return pa.schema(
        [
            with_mark(column, personal=place in tagged or bool(paths_below(column, paths)))
            for place, column in enumerate(present)
        ]
    )


def paths_below(field: pa.Field, paths: Iterable[str]) -> list[str]:
    """The paths that lead to a field or to a member of it, seen from this field: empty if one leads to the field."""
    names = {field.name, field_name(field)}
    below = ["" for path in paths if path in {"", *names}]
    return below + [path.removeprefix(f"{name}.") for path in paths for name in names if path.startswith(f"{name}.")]


def without_keys(fields: Iterable[pa.Field], paths: Collection[str]) -> list[pa.Field]:
    """The fields of a sample of JSON values, where the objects at these paths, and below them, are JSON text.

    Otherwise the keys of such an object would become the names of columns, which nothing removes again (fault Y04).
    """
    return [_without_keys(field, paths_below(field, paths)) for field in fields]


def _without_keys(field: pa.Field, paths: Collection[str]) -> pa.Field:
    if "" in paths:
        return json_text(field.name) if _has_keys(field.type) else field
    if pa.types.is_struct(field.type):
        return field.with_type(pa.struct(without_keys(field.type, paths)))
    if pa.types.is_list(field.type):
        return list_of(field.name, _without_keys(field.type.value_field, paths)) if paths else field
    return field


def _has_keys(kind: pa.DataType) -> bool:
    """Whether a type has members that are named after keys of objects."""
    return bool(pa.types.is_struct(kind) or (pa.types.is_list(kind) and _has_keys(kind.value_type)))
