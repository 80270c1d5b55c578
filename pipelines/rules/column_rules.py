"""The rules for the columns of fields: which fields are decoded, and which types their columns have in the table.

A rule is about the field of a path, and about all that is inside of it. If a value has no fields inside, because it is
a text or a number, a rule for a field inside of it is about the whole value: so it also reaches a document in a text.

What is decoded can differ from what is stored. The fields of a schema are decoded with their own types, and fields that
are dropped are not decoded. If nothing declares the fields, every field with a rule is decoded as JSON text, because it
holds any value: the column of the table does not show which types the values had. Only a list of texts stays one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from kafka_io.values.column_types import content_field, content_type, is_union, with_content_type
from kafka_io.values.columns import FIELD, ColumnNames, aliases, field_name, new_column
from kafka_io.values.json.inference import without_empty
from kafka_io.values.json.reading import JSON_READING, json_text
from pipelines.layout.columns import stored_type
from pipelines.ledger.table_rules import Constant

_TYPES: Mapping[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRule:
    """What is stored of a field.

    Args:
        path: the names that lead to the field from here; empty if it is the field here.
        treatment: what happens to its values.
        constant: what is stored in the place of a value.
        secret: the name of the secret that hashes it.
    """

    path: str
    treatment: Literal["drop", "mask", "hash"]
    constant: Constant | None = None
    secret: str = ""

    @property
    def drops(self) -> bool:
        """Whether nothing is stored."""
        return self.treatment == "drop"

    @property
    def stored(self) -> pa.DataType:
        """The type of what is stored in the place of a value without fields inside."""
        return _TYPES[type(self.constant)] if self.treatment == "mask" else pa.string()


Rules = Sequence[ColumnRule]


def inside(rules: Rules, field: pa.Field) -> Rules:
    """The rules about a field, and about fields inside of it, with the paths from there."""
    names = [name.casefold() for name in dict.fromkeys([field_name(field), *aliases(field)])]
    return tuple(dict.fromkeys(_inside(rules, names)))


def _inside(rules: Rules, names: Sequence[str]) -> Iterator[ColumnRule]:
    for rule in rules:
        path = rule.path.casefold()
        if not path:
            yield rule
        for name in names:
            if path == name or path.startswith(f"{name}."):
                yield replace(rule, path=rule.path[len(name) + 1 :])


def of_whole(rules: Rules) -> ColumnRule | None:
    """The rule about the field here, as a whole; None if the rules are about fields inside of it."""
    return next((rule for rule in rules if not rule.path), None)


def rules_of_members(rules: Rules, fields: Sequence[pa.Field]) -> list[Rules]:
    """The rules inside of each of these fields. The members of a union are no fields: they have its rules."""
    if is_union(pa.struct(fields)):
        return [rules] * len(fields)
    return [inside(rules, field) for field in fields]


def has_field(columns: Iterable[pa.Field], path: str) -> bool:
    """Whether columns have one for the field of a path, or for the text that it is inside of."""
    columns = list(columns)
    rules = rules_of_members((ColumnRule(path=path, treatment="drop"),), columns)
    return any(
        _has_field(column.type, of_column) for column, of_column in zip(columns, rules, strict=True) if of_column
    )


def _has_field(kind: pa.DataType, rules: Rules) -> bool:
    if of_whole(rules):
        return True
    if pa.types.is_struct(kind):
        return any(has_field(kind, rule.path) for rule in rules)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return _has_field(content_type(kind), rules)
    return True


def has_rule(rules: Rules, path: str) -> bool:
    """Whether a rule is about the field of a path, about one that it is inside of, or about one inside of it."""
    return any(_meet(rule.path, path) for rule in rules)


def without_drops_of(rules: Rules, paths: Sequence[str]) -> Rules:
    """The rules without those that drop one of these fields, or a part of it."""
    return tuple(rule for rule in rules if not (rule.drops and any(_meet(rule.path, path) for path in paths)))


def _meet(path: str, other: str) -> bool:
    path, other = f"{path.casefold()}.", f"{other.casefold()}."
    return path.startswith(other) or other.startswith(path)


def without_dropped(fields: Iterable[pa.Field], rules: Rules) -> list[pa.Field]:
    """The fields of a schema that are decoded: all but those that are dropped."""
    return _mapped(fields, rules, lambda field, rule: None if rule.drops else field)


def without_rules(columns: Iterable[pa.Field], rules: Rules) -> list[pa.Field]:
    """The columns of a table that have no rule. A schema says how the others are decoded."""
    return _mapped(columns, rules, lambda _field, _rule: None)


def as_stored(fields: Iterable[pa.Field], rules: Rules) -> list[pa.Field]:
    """Decoded columns as fields of the table: with the types and the names that they have there."""
    fields = list(fields)
    pairs = zip(fields, rules_of_members(rules, fields), strict=True)
    return [new for field, of_field in pairs if (new := stored_field(field, of_field)) is not None]


def stored_field(column: pa.Field, rules: Rules) -> pa.Field | None:
    """A decoded column as a field of the table, by the rules inside of it; None if nothing of it is stored."""
    field = _mapped_field(_as_field(column), rules, _stored_leaf)
    return None if field is None else field.with_type(stored_type(field.type))


def _stored_leaf(field: pa.Field, rule: ColumnRule) -> pa.Field | None:
    return None if rule.drops else _without(field, JSON_READING).with_type(rule.stored)


def _as_field(column: pa.Field) -> pa.Field:
    """A column as the field that it has, with its name."""
    return _without(column, FIELD).with_name(field_name(column)).with_type(_as_field_type(column.type))


def _as_field_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_as_field(member) for member in kind])
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return with_content_type(kind, _as_field_type(content_type(kind)))
    return kind


def _without(field: pa.Field, key: bytes) -> pa.Field:
    metadata = {name: text for name, text in (field.metadata or {}).items() if name != key}
    return field.with_metadata(metadata or None)


_OfLeaf = Callable[[pa.Field, ColumnRule], pa.Field | None]
"""Maps a field with a rule to the field that takes its place; None if no field does."""


def _mapped(fields: Iterable[pa.Field], rules: Rules, of_leaf: _OfLeaf) -> list[pa.Field]:
    """The fields, with those mapped that have rules, also inside of others. Structs without members are left out."""
    fields = list(fields)
    pairs = zip(fields, rules_of_members(rules, fields), strict=True)
    return [new for field, of_field in pairs if (new := _mapped_field(field, of_field, of_leaf)) is not None]


def _mapped_field(field: pa.Field, rules: Rules, of_leaf: _OfLeaf) -> pa.Field | None:
    kind, whole = field.type, of_whole(rules)
    if not rules:
        return field
    if whole and whole.drops:
        return of_leaf(field, whole)
    if pa.types.is_struct(kind):
        members = _mapped(kind, rules, of_leaf)
        return field.with_type(pa.struct(members)) if members else None
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        content = _mapped_field(content_field(kind), rules, of_leaf)
        return None if content is None else field.with_type(with_content_type(kind, content.type))
    return of_leaf(field, whole or rules[0])


def sampled(fields: Iterable[pa.Field], rules: Rules) -> list[pa.Field]:
    """The fields of a sample of values as they are decoded: those with rules as JSON text."""
    fields = list(fields)
    return [_sampled(field, of_field) for field, of_field in zip(fields, rules_of_members(rules, fields), strict=True)]


def _sampled(field: pa.Field, rules: Rules) -> pa.Field:
    if not rules or not without_empty([field]):
        return field
    items, rule = _innermost(field.type), of_whole(rules)
    if rule is None and pa.types.is_struct(items):
        return field.with_type(_with_innermost(field.type, pa.struct(sampled(items, rules))))
    is_list_of_texts = pa.types.is_list(field.type) and pa.types.is_string(items)
    return field if is_list_of_texts and not (rule or rules[0]).drops else json_text(field.name)


def of_sampled_table(columns: Iterable[pa.Field], rules: Rules) -> list[pa.Field]:
    """The columns of a table as they are decoded if samples show the fields, also those of fields that are dropped.

    A key without a column would be looked at again and again, because it may be a new one.
    """
    columns = list(columns)
    pairs = zip(columns, rules_of_members(rules, columns), strict=True)
    decoded = [_of_sampled_table(column, of_column) for column, of_column in pairs]
    names, known = ColumnNames(decoded), {field_name(column).casefold() for column in decoded}
    dropped = [rule.path for rule in rules if rule.drops and rule.path and rule.path.casefold() not in known]
    return [*decoded, *(new_column(json_text(name), names) for name in dropped if "." not in name)]


def _of_sampled_table(column: pa.Field, rules: Rules) -> pa.Field:
    items, rule = _innermost(column.type), of_whole(rules)
    if not rules:
        return column
    if rule is None and pa.types.is_struct(items):
        return column.with_type(_with_innermost(column.type, pa.struct(of_sampled_table(items, rules))))
    if pa.types.is_list(column.type) and not (rule or rules[0]).drops:
        return column.with_type(_with_innermost(column.type, pa.string()))
    return json_text(column.name).with_metadata({**(column.metadata or {}), **json_text("").metadata})


def _innermost(kind: pa.DataType) -> pa.DataType:
    """The type of what the innermost lists contain; the type itself if it is no list."""
    while pa.types.is_list(kind):
        kind = kind.value_type
    return kind


def _with_innermost(kind: pa.DataType, items: pa.DataType) -> pa.DataType:
    return (
        pa.list_(kind.value_field.with_type(_with_innermost(kind.value_type, items)))
        if pa.types.is_list(kind)
        else items
    )
