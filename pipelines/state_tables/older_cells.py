"""Finds the values of cells that a database did not send: in older rows of the same key (fault A18).

A value is that of the newest older row which has one. Rows that do not decode are skipped. A row that deletes the key
ends the search, because what came before it belongs to another row of the database.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from pipelines.state_tables.changes import Ascending, KeyComparison, hash_of, with_numbers
from pipelines.state_tables.files import StateFiles

Rows = Callable[[Sequence[str] | None], pa.RecordBatchReader]
"""Opens the rows of the topic's table among which the newest ones are, in the same order each time. The columns are
those that are needed, or all."""
_SOURCE = -1
"""The number of the topic's table, in place of that of a file of the state table."""
CELLS_AT_ONCE = 2048


@dataclass(kw_only=True)
class OlderCells:
    """The cells that the newest rows get from older ones. The comparison has decided which rows are the newest."""

    comparison: KeyComparison
    columns: list[int] = field(default_factory=list)
    """The numbers of the columns that have such cells."""

    def __post_init__(self) -> None:
        if not self.comparison.definition.large_columns:
            return
        run, keys = self.comparison.run, ", ".join(self.comparison.keys)
        run(f"create table gaps as select n, {keys}, unnest(unknown) as number from newest where n is not null")
        if not self.comparison.values("select 1 from gaps limit 1"):
            return
        same = self.comparison.same
        run(f"create table older as select * from placed semi join gaps on {same('placed', 'gaps')} where age > 1")
        # An older row is one of the topic's table or of the state table, so only one of `n` and `row` is not null.
        place = f"{{'file': coalesce(older.file, {_SOURCE}), 'row': coalesce(older.row, older.n)}}"
        run(
            f"create table donors as with ends as (select {keys}, min(age) as age from older where deleted group by all"
            f") select gaps.n, gaps.number, arg_min({place}, older.age) as place from gaps join older on "
            f"{same('gaps', 'older')} left join ends on {same('gaps', 'ends')} where not older.bad and older.age < "
            "coalesce(ends.age, older.age + 1) and not coalesce(list_contains(older.unknown, gaps.number), false) "
            "group by all"
        )
        self.columns = [row[0] for row in self.comparison.values("select distinct number from donors order by 1")]

    def need_history(self, *, seen_before: bool) -> bool:
        """Whether the rows of the state table are not enough to know the cells, so the topic's table has to be read.

        A row of the state table does not say which of its cells are from older rows, so no row can come between them.

        Args:
            seen_before: whether rows of the state table may have such cells.
        """
        if not (self.comparison.definition.large_columns and (seen_before or self.are_seen())):
            return False
        keys = ", ".join(self.comparison.keys)
        between = (
            f"select file from (select file, age, max(age) over (partition by {keys}) as oldest from placed) "
            "where file is not null and age < oldest"
        )
        bad = f"select file from gaps join present on {self.comparison.same('gaps', 'present')} where present.bad"
        return bool(self.comparison.values(f"({between}) union all ({bad}) limit 1"))

    def are_seen(self) -> bool:
        """Whether a row of the topic's table has a cell without a value."""
        large = self.comparison.definition.large_columns
        return bool(large and self.comparison.values("select 1 from found where unknown is not null limit 1"))

    def take(self, rows: Rows, present: StateFiles) -> None:
        """Take the values of the cells from the rows of the topic's table and of the state table."""
        for number in self.columns:
            name = self.comparison.column(number)
            kind = self.comparison.definition.source_schema.field(name).type
            schema = pa.schema({"file": pa.int64(), "row": pa.int64(), "value": kind})
            files = self.comparison.values(f"select distinct place.file from donors where number = {number}")
            cells = self._cells(number, name, [file for (file,) in files], rows, present)
            self.comparison.take(f"cells{number}", cells, schema, "select * from arriving")

    def _cells(
        self, number: int, name: str, files: Sequence[int], rows: Rows, present: StateFiles
    ) -> Iterator[pa.RecordBatch]:
        for file in files:
            places = f"select distinct place.row from donors where number = {number} and place.file = {file} order by 1"
            wanted = Ascending(self.comparison.result(places))
            schema = self.comparison.definition.schema
            batches = rows([name]) if file == _SOURCE else present.batches(file, schema, [name])
            for batch, numbers in with_numbers(batches):
                for part in wanted.before(int(numbers[0]) + batch.num_rows if batch.num_rows else 0):
                    picked = part.column(0)
                    value = batch.column(name).take(pa.array(picked.to_numpy() - numbers[0]))
                    files = pa.array(np.full(len(picked), file))
                    yield pa.RecordBatch.from_arrays([files, picked, value], names=["file", "row", "value"])

    def filled(self, number: int) -> Iterator[pa.RecordBatch]:
        """The numbers of the newest rows whose cell of a column is filled, ascending, with the values."""
        return self.comparison.result(f"select n, value from ({self._values(number)}) order by n", CELLS_AT_ONCE)

    def content(self) -> str:
        """A query for the numbers of the newest rows with filled cells, and what these cells add to their content."""
        nothing = "select null::bigint as n, 0::hugeint as content where false"
        parts = [
            f"select n, {hash_of('value', number)} as content from ({self._values(number)})" for number in self.columns
        ]
        return f"select n, sum(content) as content from ({' union all '.join([nothing, *parts])}) group by n"

    def _values(self, number: int) -> str:
        return (
            f"select donors.n, cells.value from donors join cells{number} as cells on donors.place.file = cells.file "
            f"and donors.place.row = cells.row where donors.number = {number}"
        )
