"""The columns of a batch by the rules for them: decoded columns become those of the table."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from kafka_io.values.column_types import content_field, content_type, holds
from kafka_io.values.columns import field_name
from kafka_io.values.json.reading import JsonReading, reading_of
from pipelines.rules.column_rules import ColumnRule, Rules, of_whole, rules_of_members, stored_field

if TYPE_CHECKING:  # numba is slow to import
    from kafka_io.hashes.keyed_hashes import KeyedHash


class RuledColumns:
    """Makes the columns of the table from decoded ones.

    Args:
        decoded: the columns that a decoder fills.
        table: the columns of the table for the same fields.
        rules: the rules for them.
        hashes: the hashes by the names of their secrets.
    """

    def __init__(self, decoded: pa.Schema, table: pa.Schema, rules: Rules, hashes: Mapping[str, "KeyedHash"]) -> None:
        self._hashes = hashes
        self._decoded, self._table = list(decoded), list(table)
        self._rules = rules_of_members(rules, self._decoded)
        has_rules = {field_name(field).casefold() for field, of in zip(self._decoded, self._rules, strict=True) if of}
        self._ruled = [column for column in self._table if field_name(column).casefold() in has_rules]

    def of(self, columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """The columns of the table that decoded ones fill."""
        pairs = zip(self._decoded, self._rules, strict=True)
        plain = {field.name: columns[field.name] for field, of_field in pairs if not of_field}
        arrays = [columns[field.name] for field in self._decoded]
        ruled = {column.name: self._filled(column, self._decoded, arrays, self._rules) for column in self._ruled}
        return plain | {name: array for name, array in ruled.items() if array is not None}

    def _filled(
        self, column: pa.Field, fields: Sequence[pa.Field], arrays: Sequence[pa.Array], rules: Sequence[Rules]
    ) -> pa.Array | None:
        """A column of the table, from all decoded columns of its field; None if there is none."""
        sources = [
            self._stored(array, field, column.type, of_field)
            for field, array, of_field in zip(fields, arrays, rules, strict=True)
            if field_name(field) == field_name(column) and _fits(field, of_field, column)
        ]
        # A schema may have given the field another type. Then each value is in one of the columns.
        return pc.coalesce(*sources) if len(sources) > 1 else next(iter(sources), None)

    def _stored(self, array: pa.Array, field: pa.Field, kind: pa.DataType, rules: Rules) -> pa.Array:
        """The values of a field as values of a type of the table."""
        if not rules:
            return array.cast(kind)
        if pa.types.is_struct(field.type):
            return self._struct(array, kind, rules)
        if pa.types.is_list(field.type):
            content = self._stored(array.values, content_field(field.type), content_type(kind), rules)
            return pa.Array.from_buffers(
                kind, len(array), array.buffers()[:2], array.null_count, array.offset, [content]
            )
        if pa.types.is_map(field.type):
            content = self._stored(array.items, content_field(field.type), content_type(kind), rules)
            entries = pa.StructArray.from_arrays([array.keys, content], fields=[kind.key_field, kind.item_field])
            return pa.Array.from_buffers(
                kind, len(array), array.buffers()[:2], array.null_count, array.offset, [entries]
            )
        return self._leaf(array, field, of_whole(rules) or rules[0]).cast(kind)

    def _struct(self, array: pa.StructArray, kind: pa.StructType, rules: Rules) -> pa.StructArray:
        fields = list(array.type)
        of_fields, arrays = rules_of_members(rules, fields), array.flatten()
        members = [self._filled(member, fields, arrays, of_fields) for member in kind]
        filled = [
            pa.nulls(len(array), member.type) if column is None else column
            for member, column in zip(kind, members, strict=True)
        ]
        return pa.StructArray.from_arrays(filled, fields=list(kind), mask=array.is_null())

    def _leaf(self, array: pa.Array, field: pa.Field, rule: ColumnRule) -> pa.Array:
        if rule.treatment == "mask":
            constant = pa.scalar(rule.constant, rule.stored)
            return pc.if_else(array.is_valid(), constant, pa.scalar(None, rule.stored))
        as_texts = _of_json if reading_of(field) is JsonReading.TEXT else _as_texts
        return self._hashes[rule.secret].of_each(array, as_texts)


def _fits(field: pa.Field, rules: Rules, column: pa.Field) -> bool:
    """Whether what is stored of a decoded column goes into a column of the table."""
    of_table = stored_field(field, rules)
    return of_table is not None and holds(column.type, of_table.type)


def _of_json(texts: pa.StringArray) -> pa.Array:
    """The values that are hashed for JSON texts: the content of a JSON string, and other values as they are written."""
    quoted = pc.starts_with(texts, '"')
    if not quoted.true_count:
        return texts
    data = texts.cast(pa.binary())
    contents = pc.if_else(quoted, pc.binary_slice(data, 1, -1), data)
    escaped = pc.and_(quoted, pc.match_substring(texts, "\\"))
    if not escaped.true_count:
        return contents
    # The decoder has checked the text. A lone surrogate has no UTF-8, and is kept like this only inside of a hash.
    read = [json.loads(text).encode("utf-8", "surrogatepass") for text in texts.filter(escaped).to_pylist()]
    return pc.replace_with_mask(contents, escaped, pa.array(read, pa.binary()))


def _as_texts(values: pa.Array) -> pa.Array:
    """Values as the texts that are hashed: numbers and times as Arrow writes them."""
    is_text = pa.types.is_string(values.type) or pa.types.is_binary(values.type)
    return values if is_text else values.cast(pa.string())
