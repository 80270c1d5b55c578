"""Decides which row is the newest of each key, in DuckDB, whose operators go to disk if the memory is not enough.

Only keys, places and positions go through DuckDB. A row of the topic's table is known by its number in the order in
which it is read, and a row of the state table by its file and its number in it. So the other columns of a row, which
may be large, are read once, by Arrow, and copied with the types that they have.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.increments.output import WatchedRows
from pipelines.state_tables.files import RowNumbers, StateFiles
from pipelines.state_tables.state_table import POSITION, StateDefinition
from resources.errors import LakeUnavailable, OutputRefused
from resources.machines.duckdb_connections import connect_duckdb

_NUMBERS_AT_ONCE = 100_000
_NO_BROKER = -1
_PLACE = ("era", "broker", "partition", "place", "item")
"""The number of the incarnation, the broker (-1 without one), partition, offset and inner position of a row."""
_RANK = "era desc, effective desc nulls last, broker desc, partition desc, place desc, item desc"
"""The newest row of a key is the first in this order."""


class KeyComparison(ExitStack):
    """The rows of a topic's table and of its state table, compared by key.

    Args:
        definition: the state table's columns.
        incarnations: the number of the incarnation by loading time, higher for a newer one; empty if there is one.
        memory_mib: the maximum memory.
        content: the columns of which a number is kept that differs if one of them does, to compare whole rows.
    """

    def __init__(
        self, definition: StateDefinition, incarnations: Mapping[int, int], memory_mib: int, content: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self.definition = definition
        self._content = content
        self._times, self._eras = _runs(incarnations)
        folder = self.enter_context(tempfile.TemporaryDirectory(prefix="penstock-state-"))
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{memory_mib}MiB",
            "temp_directory": str(folder),
            "preserve_insertion_order": "false",
        }
        # Tables of a database in memory go to temporary files too, and unlike those of a file they are never synced.
        self._duckdb = self.enter_context(connect_duckdb(config=config))
        self._keys = [f"k{number}" for number in range(len(definition.keys))]
        self._has_key = " or ".join(f"{name} is not null" for name in self._keys)

    def take_touched(self, *readers: pa.RecordBatchReader) -> None:
        """Take the keys of these rows of the topic's table as those to compute again."""
        names = ", ".join(self._keys)
        select = f"select distinct {names} from arriving"
        for number, reader in enumerate(readers):
            batches = (self._keys_only(batch) for batch in reader)
            self._take(f"keys{number}", batches, self._key_schema(), f"{select} where {self._has_key}")
        parts = " union ".join(f"select {names} from keys{number}" for number in range(len(readers)))
        self._run(f"create table touched as {parts}")

    def take_rows(self, reader: pa.RecordBatchReader, *, only_touched: bool = False) -> None:
        """Take rows of the topic's table, in the order of `reader`. Rows without a key are left out."""
        select = f"select {self._kept('n')} from arriving where {self._has_key}"
        if only_touched:
            select = f"select {self._kept('n')} from arriving semi join touched on {self.same('arriving', 'touched')}"
        self._take("found", self._numbered(reader), self._schema("n"), select)
        if not only_touched:
            self._run(f"create view touched as select distinct {', '.join(self._keys)} from found")

    def take_present(self, files: StateFiles, *, only_touched: bool = True) -> None:
        """Take the rows of the state table, or only those that have one of the touched keys."""
        select = f"select {self._kept('file', 'row')} from arriving"
        if only_touched:
            select += f" semi join touched on {self.same('arriving', 'touched')}"
        self._take("present", self._of_state(files), self._schema("file", "row"), select)

    def decide(self, *, with_present: bool) -> None:
        """Find the newest row of each key among the rows of the topic's table, and with those of the state table."""
        names = ", ".join((*self._keys, *_PLACE, "position"))
        candidates = f"select n, null::bigint as file, null::bigint as row, {names} from found"
        if with_present:
            candidates += f" union all select null::bigint, file, row, {names} from present"
        keys = ", ".join(self._keys)
        before = f"max(position) over (partition by {keys}, era, broker, partition order by place, item)"
        effective = f"coalesce(position, {before})" if self.definition.order else before
        self._run(
            f"create table newest as with candidates as ({candidates}), placed as (select *, {effective} as effective "
            f"from candidates) select n, file, row, {keys}, {', '.join(_PLACE)}, effective from placed "
            f"qualify row_number() over (partition by {keys} order by {_RANK}) = 1"
        )
        self._run(
            "create table dropped as select file, row from present anti join (select file, row from newest where n is "
            "null) as kept using (file, row)"
        )

    def newest(self) -> Iterator[pa.RecordBatch]:
        """The numbers of the rows to add, ascending, with their positions."""
        return self._result("select n, effective from newest where n is not null order by n")

    def dropped(self, file: int) -> Iterator[pa.RecordBatch]:
        """The numbers of the rows to take out of a file of the state table, ascending."""
        return self._result(f"select row from dropped where file = {file} order by row")

    def touched_files(self) -> set[int]:
        """The files of the state table from which rows are taken."""
        return {row[0] for row in self.values("select distinct file from dropped")}

    def counts(self) -> dict[str, int]:
        """How many keys got another row, and how many have no row any more."""
        [(changed,)] = self.values("select count(*) from newest where n is not null")
        [(added,)] = self.values(
            f"select count(*) from newest anti join present on {self.same('newest', 'present')} where n is not null"
        )
        [(dropped,)] = self.values("select count(*) from dropped")
        return {"changed": changed, "added": added, "removed": dropped - (changed - added)}

    def _kept(self, *numbers: str) -> str:
        """The columns of arriving rows that are kept."""
        names = [*numbers, *_PLACE, *self._keys, "position"]
        hashed = ", ".join(f"arriving.c{number}" for number in range(len(self._content)))
        return ", ".join([*(f"arriving.{name}" for name in names), *([f"hash({hashed}) as content"] if hashed else [])])

    def same(self, left: str, right: str) -> str:
        """The condition for rows with the same key."""
        return " and ".join(f"{left}.{name} is not distinct from {right}.{name}" for name in self._keys)

    def _key_schema(self) -> pa.Schema:
        schema = self.definition.source_schema
        kinds = [schema.field(name).type for name in self.definition.keys]
        return pa.schema([pa.field(name, kind) for name, kind in zip(self._keys, kinds, strict=True)])

    def _schema(self, *numbers: str) -> pa.Schema:
        own = [pa.field(name, pa.int64()) for name in (*numbers, *_PLACE)]
        kinds = [self.definition.schema.field(name).type for name in self._content]
        content = [pa.field(f"c{number}", kind) for number, kind in enumerate(kinds)]
        return pa.schema([*own, *self._key_schema(), pa.field("position", self.definition.position_type), *content])

    def _keys_only(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [rows.column(name) for name in self.definition.keys], schema=self._key_schema()
        )

    def _numbered(self, reader: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows, numbers in _with_numbers(reader):
            yield self._compared(rows, [numbers], self.definition.positions(rows), self._schema("n"))

    def _of_state(self, files: StateFiles) -> Iterator[pa.RecordBatch]:
        columns = list(dict.fromkeys([*self.definition.keys, *self.definition.places, POSITION, *self._content]))
        schema = self._schema("file", "row")
        for file in range(len(files.files)):
            for rows, numbers in _with_numbers(files.batches(file, self.definition.schema, columns)):
                yield self._compared(rows, [np.full(rows.num_rows, file), numbers], rows.column(POSITION), schema)

    def _compared(
        self, rows: pa.RecordBatch, numbers: Sequence[RowNumbers], positions: pa.Array, schema: pa.Schema
    ) -> pa.RecordBatch:
        broker, partition, offset, item, loaded_at = (
            rows.column(name).cast(pa.int64()).fill_null(_NO_BROKER) for name in self.definition.places
        )
        eras = self._eras[np.searchsorted(self._times, loaded_at.to_numpy(), side="right")]
        own = [*map(pa.array, numbers), pa.array(eras), broker, partition, offset, item]
        return pa.RecordBatch.from_arrays(
            [*own, *map(rows.column, self.definition.keys), positions, *map(rows.column, self._content)], schema=schema
        )

    def _take(self, table: str, batches: Iterator[pa.RecordBatch], schema: pa.Schema, select: str) -> None:
        rows = WatchedRows(pa.RecordBatchReader.from_batches(schema, batches))
        self._duckdb.register("arriving", rows.reader())
        try:
            with rows.own_error():
                self._run(f"create table {table} as {select}")
        finally:
            self._duckdb.unregister("arriving")

    def _run(self, statement: str) -> None:
        with _duckdb_errors():
            self._duckdb.execute(statement)

    def values(self, query: str) -> list[Any]:
        """The rows of a query over what was taken."""
        with _duckdb_errors():
            return self._duckdb.execute(query).fetchall()

    def _result(self, query: str) -> Iterator[pa.RecordBatch]:
        with _duckdb_errors(), self._duckdb.cursor() as cursor:
            yield from cursor.sql(query).to_arrow_reader(_NUMBERS_AT_ONCE)


def _runs(incarnations: Mapping[int, int]) -> tuple[RowNumbers, RowNumbers]:
    """The loading times at which another incarnation begins, ascending, and the numbers before and after each."""
    times = np.array(sorted(incarnations), np.int64)
    numbers = np.array([incarnations[time] for time in times.tolist()] or [0], np.int64)
    changes = np.flatnonzero(np.diff(numbers)) + 1
    return times[changes], numbers[np.append(0, changes)]


def _with_numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, RowNumbers]]:
    """The batches, with the numbers of their rows from the first batch on."""
    first = 0
    for rows in batches:
        yield rows, np.arange(first, first + rows.num_rows)
        first += rows.num_rows


@contextmanager
def _duckdb_errors() -> Iterator[None]:
    """Turn errors of DuckDB inside a `with` block into our own.

    Raises:
        OutputRefused: the memory of the settings is not enough.
        LakeUnavailable: there is another reason, such as a full disk.
    """
    import duckdb  # noqa: PLC0415 - it is an extra

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise OutputRefused(
            "the memory is not enough to compare the keys: raise `memory_mib` of the state table"
        ) from error
    except duckdb.Error as error:
        raise LakeUnavailable("the keys cannot be compared in temporary files; the cause says why") from error
