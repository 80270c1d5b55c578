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
from pipelines.layout.columns import ERROR_COLUMN
from pipelines.state_tables.files import RowNumbers, StateFiles
from pipelines.state_tables.state_table import POSITION, StateDefinition
from resources.errors import LakeUnavailable, OutputRefused
from resources.machines.duckdb_connections import connect_duckdb

NUMBERS_AT_ONCE = 100_000
_NO_BROKER = -1
_PLACE = ("era", "broker", "partition", "place", "item")
"""The number of the incarnation, the broker (-1 without one), partition, offset and inner position of a row."""
_LIFETIME = ("unknown", "deleted", "bad")
"""The numbers of the columns without a value, and whether a row deletes its key or does not decode."""
_RANK = "era desc, effective desc nulls last, broker desc, partition desc, place desc, item desc"
"""The newest row of a key is the first in this order."""


class KeyComparison(ExitStack):
    """The rows of a topic's table and of its state table, compared by key.

    Args:
        definition: the state table's columns.
        incarnations: the number of the incarnation by loading time, higher for a newer one; empty if there is one.
        memory_mib: the maximum memory.
        content: the columns of which a number is kept that differs if one of them does, to compare whole rows. Cells
            without a value count as equal.
    """

    def __init__(
        self, definition: StateDefinition, incarnations: Mapping[int, int], memory_mib: int, content: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self.definition = definition
        self._content = content
        self._columns = list(dict.fromkeys([*content, *definition.large_columns]))
        self._times, self._eras = _runs(incarnations)
        folder = self.enter_context(tempfile.TemporaryDirectory(prefix="penstock-state-"))
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{memory_mib}MiB",
            "temp_directory": str(folder),
            "preserve_insertion_order": "false",
        }
        # Tables of a database in memory go to temporary files too, and unlike those of a file they are never synced.
        self._duckdb = self.enter_context(connect_duckdb(config=config))
        self.keys = [f"k{number}" for number in range(len(definition.keys))]
        self._lifetime = _LIFETIME if definition.large_columns else ()
        self._has_key = " or ".join(f"{name} is not null" for name in self.keys)

    def take_touched(self, *readers: pa.RecordBatchReader) -> None:
        """Take the keys of these rows of the topic's table as those to compute again."""
        names = ", ".join(self.keys)
        select = f"select distinct {names} from arriving"
        for number, reader in enumerate(readers):
            batches = (self._keys_only(batch) for batch in reader)
            self.take(f"keys{number}", batches, self._key_schema(), f"{select} where {self._has_key}")
        parts = " union ".join(f"select {names} from keys{number}" for number in range(len(readers)))
        self.run(f"create table touched as {parts}")

    def take_rows(self, reader: pa.RecordBatchReader, *, only_touched: bool = False) -> None:
        """Take rows of the topic's table, in the order of `reader`. Rows without a key are left out."""
        select = self._select(self._columns, "n", only_touched=only_touched)
        if not only_touched:
            select += f" where {self._has_key}"
        self.take("found", self._numbered(reader), self._schema(self._columns, "n"), select)
        if not only_touched:
            self.run(f"create view touched as select distinct {', '.join(self.keys)} from found")

    def take_present(self, files: StateFiles, *, only_touched: bool = True) -> None:
        """Take the rows of the state table, or only those that have one of the touched keys."""
        select = self._select(self._content, "file", "row", only_touched=only_touched)
        self.take("present", self._of_state(files), self._schema(self._content, "file", "row"), select)

    def decide(self, *, with_present: bool) -> None:
        """Find the newest row of each key among the rows of the topic's table, and with those of the state table."""
        names = ", ".join((*self.keys, *_PLACE, "position", *self._lifetime))
        candidates = f"select n, null::bigint as file, null::bigint as row, {names} from found"
        if with_present:
            candidates += f" union all select null::bigint, file, row, {names} from present"
        keys = ", ".join(self.keys)
        before = f"max(position) over (partition by {keys}, era, broker, partition order by place, item)"
        effective = f"coalesce(position, {before})" if self.definition.order else before
        self.run(
            f"create view placed as with candidates as ({candidates}), times as (select *, {effective} as effective "
            f"from candidates) select *, row_number() over (partition by {keys} order by {_RANK}) as age from times"
        )
        self.run("create table newest as select * from placed where age = 1")
        self.run(
            "create table dropped as select file, row from present anti join (select file, row from newest where n is "
            "null) as kept using (file, row)"
        )

    def newest(self, rows_at_once: int = NUMBERS_AT_ONCE) -> Iterator[pa.RecordBatch]:
        """The numbers of the rows to add, ascending, with their positions."""
        return self.result("select n, effective from newest where n is not null order by n", rows_at_once)

    def dropped(self, file: int) -> Iterator[pa.RecordBatch]:
        """The numbers of the rows to take out of a file of the state table, ascending."""
        return self.result(f"select row from dropped where file = {file} order by row")

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

    def _select(self, columns: Sequence[str], *numbers: str, only_touched: bool) -> str:
        """What is kept of rows that come with these columns. A join must not get the columns themselves."""
        select = f"select * from (select {self._kept(columns, *numbers)} from arriving) as rows"
        return f"{select} semi join touched on {self.same('rows', 'touched')}" if only_touched else select

    def _kept(self, columns: Sequence[str], *numbers: str) -> str:
        names = [*numbers, *_PLACE, *self.keys, "position"]
        parts = [f"arriving.{name}" for name in names]
        conditions = self._placeholder_conditions(columns)
        if self.definition.large_columns:
            numbers_of = [f"case when {condition} then {number} end" for number, condition in conditions.items()]
            unknown = f"nullif(list_filter([{', '.join(numbers_of)}], lambda x: x is not null), [])"
            parts += [f"{unknown if numbers_of else 'null'}::integer[] as unknown", "arriving.deleted", "arriving.bad"]
        if self._content:
            whole = ", ".join(f"arriving.c{number}" for number in range(len(columns)) if number not in conditions)
            single = [
                f"case when coalesce({condition}, false) then 0 else {hash_of(f'arriving.c{number}', number)} end"
                for number, condition in conditions.items()
            ]
            parts.append(" + ".join([f"hash({whole})::hugeint", *single]) + " as content")
        return ", ".join(parts)

    def _placeholder_conditions(self, columns: Sequence[str]) -> dict[int, str]:
        """The conditions for cells without a value, by the number of their column."""
        large = self.definition.large_columns
        conditions = {
            number: self.definition.placeholder_condition(name, f"arriving.c{number}")
            for number, name in enumerate(columns)
            if name in large
        }
        return {number: condition for number, condition in conditions.items() if condition is not None}

    def column(self, number: int) -> str:
        """The name of the column with this number."""
        return self._columns[number]

    def same(self, left: str, right: str) -> str:
        """The condition for rows with the same key."""
        return " and ".join(f"{left}.{name} is not distinct from {right}.{name}" for name in self.keys)

    def _key_schema(self) -> pa.Schema:
        schema = self.definition.source_schema
        kinds = [schema.field(name).type for name in self.definition.keys]
        return pa.schema([pa.field(name, kind) for name, kind in zip(self.keys, kinds, strict=True)])

    def _schema(self, columns: Sequence[str], *numbers: str) -> pa.Schema:
        own = [pa.field(name, pa.int64()) for name in (*numbers, *_PLACE)]
        position = pa.field("position", self.definition.position_type)
        lifetime = [pa.field(name, pa.bool_()) for name in self._lifetime if name != "unknown"]
        kinds = [self.definition.schema.field(name).type for name in columns]
        cells = [pa.field(f"c{number}", kind) for number, kind in enumerate(kinds)]
        return pa.schema([*own, *self._key_schema(), position, *lifetime, *cells])

    def _keys_only(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [rows.column(name) for name in self.definition.keys], schema=self._key_schema()
        )

    def _numbered(self, reader: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = self._schema(self._columns, "n")
        for rows, numbers in with_numbers(reader):
            yield self._compared(rows, [numbers], self.definition.positions(rows), self._columns, schema)

    def _of_state(self, files: StateFiles) -> Iterator[pa.RecordBatch]:
        definition = self.definition
        own = [*definition.keys, *definition.places, POSITION, *definition.lifetime_columns]
        columns = list(dict.fromkeys([*own, *self._content]))
        schema = self._schema(self._content, "file", "row")
        for file in range(len(files.files)):
            for rows, numbers in with_numbers(files.batches(file, definition.schema, columns)):
                places = [np.full(rows.num_rows, file), numbers]
                yield self._compared(rows, places, rows.column(POSITION), self._content, schema)

    def _compared(
        self,
        rows: pa.RecordBatch,
        numbers: Sequence[RowNumbers],
        positions: pa.Array,
        columns: Sequence[str],
        schema: pa.Schema,
    ) -> pa.RecordBatch:
        broker, partition, offset, item, loaded_at = (
            rows.column(name).cast(pa.int64()).fill_null(_NO_BROKER) for name in self.definition.places
        )
        eras = self._eras[np.searchsorted(self._times, loaded_at.to_numpy(), side="right")]
        own = [*map(pa.array, numbers), pa.array(eras), broker, partition, offset, item]
        lifetime = [self.definition.deleted(rows), rows.column(ERROR_COLUMN).is_valid()] if self._lifetime else []
        cells = map(rows.column, columns)
        return pa.RecordBatch.from_arrays(
            [*own, *map(rows.column, self.definition.keys), positions, *lifetime, *cells], schema=schema
        )

    def take(self, table: str, batches: Iterator[pa.RecordBatch], schema: pa.Schema, select: str) -> None:
        """Make a table of what `select` keeps of the rows in `arriving`."""
        rows = WatchedRows(pa.RecordBatchReader.from_batches(schema, batches))
        self._duckdb.register("arriving", rows.reader())
        try:
            with rows.own_error():
                self.run(f"create table {table} as {select}")
        finally:
            self._duckdb.unregister("arriving")

    def run(self, statement: str) -> None:
        """Run a statement over what was taken."""
        with _duckdb_errors():
            self._duckdb.execute(statement)

    def values(self, query: str) -> list[Any]:
        """The rows of a query over what was taken."""
        with _duckdb_errors():
            return self._duckdb.execute(query).fetchall()

    def result(self, query: str, rows_at_once: int = NUMBERS_AT_ONCE) -> Iterator[pa.RecordBatch]:
        """The rows of a query in batches, also while rows are taken."""
        with _duckdb_errors(), self._duckdb.cursor() as cursor:
            yield from cursor.sql(query).to_arrow_reader(rows_at_once)


def _runs(incarnations: Mapping[int, int]) -> tuple[RowNumbers, RowNumbers]:
    """The loading times at which another incarnation begins, ascending, and the numbers before and after each."""
    times = np.array(sorted(incarnations), np.int64)
    numbers = np.array([incarnations[time] for time in times.tolist()] or [0], np.int64)
    changes = np.flatnonzero(np.diff(numbers)) + 1
    return times[changes], numbers[np.append(0, changes)]


def with_numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, RowNumbers]]:
    """The batches, with the numbers of their rows from the first batch on."""
    first = 0
    for rows in batches:
        yield rows, np.arange(first, first + rows.num_rows)
        first += rows.num_rows


def hash_of(cell: str, number: int) -> str:
    """What the cell of a column, as an SQL expression, adds to the content of its row."""
    return f"hash({cell}, {number})::hugeint"


class Ascending:
    """Rows with ascending numbers in their first column. They come in batches, and are taken in steps."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._waiting = next(batches, None)

    def before(self, end: int) -> Iterator[pa.RecordBatch]:
        """The rows with numbers below `end` that were not taken yet."""
        while self._waiting is not None:
            count = int(np.searchsorted(self._waiting.column(0).to_numpy(), end))
            if count:
                yield self._waiting.slice(0, count)
            if count < self._waiting.num_rows:
                self._waiting = self._waiting.slice(count)
                return
            self._waiting = next(self._batches, None)


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
