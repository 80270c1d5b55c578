"""Rows that a table has, by new rules: what older rules stored becomes what the new ones store, if that is possible."""

import pyarrow as pa

from pipelines.layout.columns import KEY_PREFIX
from pipelines.layout.layout import TableLayout
from pipelines.ledger.table_rules import DROP, HEADERS_COLUMN, KEEP, KEY_COLUMN, RAW_COLUMN, TableRules
from pipelines.rules.changes import rules_conflict
from pipelines.rules.column_rules import Rules, rules_of_members, stored_field
from pipelines.rules.row_rules import RowRules
from pipelines.rules.ruled_columns import RuledColumns
from resources.errors import RewriteRefused


class StoredRows:
    """The rows of a table with this layout, which were stored by the rules `before`.

    Raises:
        RewriteRefused: the new rules need values that the table does not have.
        SecretMissing: a key of hashes cannot be read.
    """

    def __init__(self, layout: TableLayout, before: TableRules, rules: RowRules) -> None:
        after = rules.recorded()
        _check_possible(before, after, layout.values)
        self._layout = layout
        # Hashes of the same key are there already: a hash of a hash would be another value.
        self._rules = rules if before.key != after.key else rules.without_key()
        is_key = [column.name.startswith(KEY_PREFIX) for column in layout.values]
        new = tuple(
            rule for rule in rules.columns if rule.drops or before.meaning(rule.path) != after.meaning(rule.path)
        )
        self._parts = [
            self._part(
                [column for column, of_key in zip(layout.values, is_key, strict=True) if of_key == of_keys], part
            )
            for of_keys, part in ((False, new), (True, self._rules.of_key_columns))
        ]

    def _part(self, columns: list[pa.Field], rules: Rules) -> RuledColumns:
        for column, of_column in zip(columns, rules_of_members(rules, columns), strict=True):
            field = stored_field(column, of_column)
            if (
                of_column
                and field is not None
                and not any(rule.drops for rule in of_column)
                and field.type != column.type
            ):
                raise RewriteRefused(
                    f"the column {column.name} has the type {column.type}, and by the rules it would be {field.type}; "
                    "the columns of a table keep their types: move the table away to load the topic into a new one"
                )
        schema = pa.schema(columns)
        return RuledColumns(schema, schema, rules, self._rules.hashes())

    def by_new_rules(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a file as the new rules store them."""
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        filled = {name: array for part in self._parts for name, array in part.of(columns).items()}
        arrays = [
            filled.get(field.name, pa.nulls(rows.num_rows, field.type))
            if field.name in self._layout.values.names
            else columns[field.name]
            for field in rows.schema
        ]
        return self._rules.applied(pa.RecordBatch.from_arrays(arrays, schema=rows.schema), self._layout)


def _check_possible(before: TableRules, after: TableRules, columns: pa.Schema) -> None:
    missing = [
        path
        for path in rules_conflict(before, after, columns)
        if path != KEY_COLUMN and before.meaning(path) is not None and path not in after.mask
    ]
    if before.key not in {KEEP, after.key} and after.key != DROP:
        missing.append(KEY_COLUMN)
    if missing:
        raise RewriteRefused(
            f"the table does not have the values any more that the new rules need: {', '.join(missing)}. A hash cannot "
            "become a value again, or the hash of another key: restore the former rules and secrets, or move the table "
            "away to load the topic into a new one"
        )


def rules_after_rewrite(before: TableRules, after: TableRules) -> TableRules:
    """The rules of a table all of whose rows were stored again by the rules `after`."""
    same = {KEY_COLUMN: after.key == DROP, RAW_COLUMN: after.raw == DROP, HEADERS_COLUMN: before.headers is None}
    varying = [name for name in before.varying if not same.get(name, name in after.drop)]
    if before.headers is not None and before.headers != after.headers:
        varying.append(HEADERS_COLUMN)
    # No row is left out of a table that has it, so what is known of `skip` stays.
    return after.of_all_rows(varying).with_skip(before.skip, before.skip_since)
