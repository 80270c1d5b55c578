"""Writes a state table: copies the files from which rows are taken without these rows, and adds the newest rows.

The files, the removed files and the progress are one entry of the Delta log. It lands on the version that was read,
or not at all: deltalake must not try it again on a newer version, whose files are others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.transaction import AddAction, RemoveAction

from pipelines.delta.write_options import AFTER_COMMIT
from pipelines.state_tables.changes import Ascending, KeyComparison
from pipelines.state_tables.files import StateFiles, StateFileWriter
from pipelines.state_tables.older_cells import CELLS_AT_ONCE, OlderCells, Rows
from pipelines.state_tables.state_table import DELETED, POSITION, StateDefinition
from resources.failpoints import failpoint


@dataclass(slots=True, kw_only=True)
class StateMerge:
    """Writes the newest rows in place of those that the state table has of their keys.

    Args:
        definition: the columns.
        comparison: the decided rows.
        cells: the cells that they get from older rows.
        rows: the rows of the topic's table.
        present: the files of the state table.
        replaces_all: whether the table gets new columns, or other rows in all files.
        failure: see TableWrite.
    """

    definition: StateDefinition
    comparison: KeyComparison
    cells: OlderCells
    rows: Rows
    present: StateFiles
    replaces_all: bool
    failure: BaseException | None = None

    def schema(self) -> Any:
        """The columns of the state table."""
        return Schema.from_arrow(self.definition.schema)

    def write(self, handle: DeltaTable, properties: CommitProperties) -> None:
        """Write the files and the entry on top of the version of the handle."""
        uri, options = self.present.uri, self.present.options
        writer = StateFileWriter(uri=uri, options=options, schema=self.definition.schema)
        rewritten = self._rewritten()
        for number in sorted(rewritten):
            for rows in self._kept(number):
                writer.write(rows)
        for rows in self._newest():
            writer.write(rows)
        writer.close()
        failpoint("state files written")
        writer.check_complete()
        removals = [] if self.replaces_all else [self.present.files[number].removal() for number in sorted(rewritten)]
        replaced = self.schema() if self.replaces_all else None
        _write_entry([*removals, *writer.actions], handle, properties, replaced)

    def _rewritten(self) -> set[int]:
        if self.replaces_all:
            return set(range(len(self.present.files)))
        return self.comparison.touched_files() | self.present.small()

    def _kept(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of a file that stay."""
        dropped, first = Ascending(self.comparison.dropped(number)), 0
        schema = self.definition.schema
        for rows in self.present.batches(number, schema, schema.names):
            stays = np.ones(rows.num_rows, np.bool_)
            for part in dropped.before(first + rows.num_rows):
                stays[part.column(0).to_numpy() - first] = False
            first += rows.num_rows
            yield _as(schema, rows.filter(pa.array(stays)))

    def _newest(self) -> Iterator[pa.RecordBatch]:
        """The rows to add, with the two columns of a state table."""
        self.cells.take(self.rows, self.present)
        filled = {self.comparison.column(number): Ascending(self.cells.filled(number)) for number in self.cells.columns}
        wanted, first = Ascending(self.comparison.newest(*([CELLS_AT_ONCE] if filled else []))), 0
        for batch in self.rows(None):
            for part in wanted.before(first + batch.num_rows):
                numbers, positions = part.columns
                rows = batch.take(pa.array(numbers.to_numpy() - first))
                columns = {name: rows.column(name) for name in self.definition.source_schema.names}
                for name, cells in filled.items():
                    columns[name] = _with_cells(columns[name], numbers, cells)
                columns |= {DELETED: self.definition.deleted(rows), POSITION: positions}
                yield _as(self.definition.schema, pa.RecordBatch.from_pydict(columns))
            first += batch.num_rows


class ProgressWrite:
    """Writes only the progress, for a topic's table that has other files and the same rows."""

    failure: BaseException | None = None

    def schema(self) -> Any:
        """The table exists, so no columns are needed."""

    def write(self, handle: DeltaTable, properties: CommitProperties) -> None:
        """Write the entry on top of the version of the handle."""
        _write_entry([], handle, properties)


def _write_entry(
    actions: Sequence[AddAction | RemoveAction],
    handle: DeltaTable,
    properties: CommitProperties,
    replaced: Schema | None = None,
) -> None:
    """Write an entry that lands on the version of the handle, or not at all."""
    properties.max_commit_retries = 0
    handle.create_write_transaction(
        list(actions),
        mode="append" if replaced is None else "overwrite",
        schema=replaced or handle.schema(),
        partition_by=[],
        commit_properties=properties,
        post_commithook_properties=AFTER_COMMIT,
    )


def _as(schema: pa.Schema, rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([rows.column(name) for name in schema.names], schema=schema)


def _with_cells(column: pa.Array, numbers: pa.Array, cells: Ascending) -> pa.Array:
    """A column of rows with these numbers, where cells get other values."""
    parts = list(cells.before(numbers[-1].as_py() + 1))
    if not parts:
        return column
    places = np.searchsorted(numbers.to_numpy(), np.concatenate([part.column(0).to_numpy() for part in parts]))
    values = pa.concat_arrays([column, *(part.column(1).cast(column.type) for part in parts)])
    order = np.arange(len(column))
    order[places] = len(column) + np.arange(len(places))
    return values.take(pa.array(order))
