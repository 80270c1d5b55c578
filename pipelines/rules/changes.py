"""Rules that differ from those of the rows that a table has: whether one column would hold values of two meanings."""

from functools import partial

import pyarrow as pa

from pipelines.layout.columns import KEY_PREFIX
from pipelines.layout.layout import TYPED, TableLayout
from pipelines.layout.rows import FILE_SCHEMA
from pipelines.ledger.table_rules import KEY_COLUMN, TableRules
from pipelines.rules.column_rules import has_field
from resources.errors import RulesChanged


def rules_conflict(present: TableRules, planned: TableRules, columns: pa.Schema) -> list[str]:
    """The columns that would hold values of two meanings, and the ids that would stand for two keys.

    A table that drops other fields or headers than before is no conflict: its older rows have more, or less, than its
    newer ones.
    """
    ids = [f"hashes that begin with {id_}:" for id_ in present.changed_secrets(planned)]
    return [*present.conflicts(planned, partial(has_field, columns)), *ids]


def check_rules(present: TableRules, planned: TableRules, columns: pa.Schema) -> None:
    """Check that rows by the planned rules fit into a table with these columns for fields.

    Raises:
        RulesChanged: one column would hold values of two meanings.
    """
    if present.same_as(planned):
        return
    conflict = rules_conflict(present, planned, columns)
    if conflict:
        raise RulesChanged(
            f"rows of the table were stored by other rules than [topics.NAME.load] has now, so values of two meanings "
            f"would be in one column: {', '.join(conflict)}. Restore the former rules and secrets, or store all rows "
            "again by the new ones with `penstock rewrite`"
        )


def varying_columns(rules: TableRules, layout: TableLayout) -> set[str]:
    """The columns of a table of which older rows have more or less than newer ones."""
    own = {typed: layout.name(name) for name in FILE_SCHEMA.names if (typed := TYPED.name(name)) in rules.varying}
    of_keys = {column.name for column in layout.values if KEY_COLUMN in own and column.name.startswith(KEY_PREFIX)}
    fields = (column.name for path in rules.varying for column in layout.values if has_field([column], path))
    return {*own.values(), *of_keys, *fields}
