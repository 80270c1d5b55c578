"""Four readers of a table, each asked for rows by a filter on a value: in the table, and in the rows it has read.

A filter on a table is answered with the help of the bounds in the log, one on rows in memory is not. So both answers
are the same only if the bounds are right.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as spark_functions
from pyspark.sql.types import StructType

OFFSET = "_kafka_offset"
Path = tuple[str, ...]
"""A column, or a member of a struct in it: the names from the outside in."""
Offsets = list[int]


class AskedReader(Protocol):
    """A reader of one table."""

    def rows(self) -> pa.Table:
        """All rows, in any order."""
        ...

    def found(self, path: Path, value: Any, *, in_memory: bool) -> Offsets:
        """The offsets of the rows with this value, or of those without any if it is None."""
        ...


class _Arrow:
    def __init__(self, table: DeltaTable) -> None:
        self._stored = table.to_pyarrow_dataset()
        self._held = self._stored.to_table()

    def rows(self) -> pa.Table:
        return self._held

    def found(self, path: Path, value: Any, *, in_memory: bool) -> Offsets:
        column = pc.field(path[0]) if len(path) == 1 else pc.field(*path)
        is_wanted = column.is_null() if value is None else column == pa.scalar(value, type_at(self._held.schema, path))
        source = self._held if in_memory else self._stored
        filtered = source.filter(is_wanted) if in_memory else source.to_table(columns=[OFFSET], filter=is_wanted)
        return sorted(filtered.column(OFFSET).to_pylist())


class _DuckDb:
    def __init__(self, table: DeltaTable) -> None:
        self._database = duckdb.connect(config={"threads": 1})
        self._database.execute("SET TimeZone = 'UTC'")
        self._database.register("stored", table.to_pyarrow_dataset())
        self._database.execute("CREATE TABLE held AS SELECT * FROM stored")

    def rows(self) -> pa.Table:
        return self._database.sql("SELECT * FROM held").to_arrow_table()

    def found(self, path: Path, value: Any, *, in_memory: bool) -> Offsets:
        first, *members = ('"' + name.replace('"', '""') + '"' for name in path)
        column = f"({first})" + "".join(f".{member}" for member in members)
        condition = "IS NULL" if value is None else "= $1"
        query = f"SELECT {OFFSET} FROM {'held' if in_memory else 'stored'} WHERE {column} {condition}"
        found = self._database.execute(query, [] if value is None else [value]).fetchall()
        return sorted(offset for (offset,) in found)


class _Polars:
    def __init__(self, table: DeltaTable) -> None:
        self._stored = pl.scan_delta(table.table_uri)
        self._held = self._stored.collect()

    def rows(self) -> pa.Table:
        return self._held.to_arrow()

    def found(self, path: Path, value: Any, *, in_memory: bool) -> Offsets:
        kind = self._held.schema[path[0]]
        column = pl.nth(self._held.columns.index(path[0]))  # Polars reads a name such as `^a$` as an expression
        for member in path[1:]:
            assert isinstance(kind, pl.Struct)
            kind = next(field.dtype for field in kind.fields if field.name == member)  # type: ignore[assignment]
            column = column.struct.field(member)
        frame = self._held.lazy() if in_memory else self._stored
        is_wanted = column.is_null() if value is None else column == pl.lit(value, dtype=kind)
        return sorted(frame.filter(is_wanted).collect()[OFFSET].to_list())


class _Spark:
    """Spark reads the files of the log with their own bounds: there is no Delta connector for this Spark."""

    def __init__(self, table: DeltaTable, session: SparkSession) -> None:
        schema = StructType.fromJson(json.loads(table.schema().to_json()))
        files = session.read.schema(schema).option("basePath", table.table_uri)
        self._stored = files.parquet(*table.file_uris())
        self._held = session.createDataFrame(self._stored.toArrow())

    def rows(self) -> pa.Table:
        return self._held.toArrow()

    def found(self, path: Path, value: Any, *, in_memory: bool) -> Offsets:
        column = spark_functions.col(".".join("`" + name.replace("`", "``") + "`" for name in path))
        is_wanted = column.isNull() if value is None else column == spark_functions.lit(value)
        found = (self._held if in_memory else self._stored).filter(is_wanted).select(OFFSET).collect()
        return sorted(row[0] for row in found)


READERS: Mapping[str, Callable[[DeltaTable], AskedReader]] = {
    "deltalake": _Arrow,
    "DuckDB": _DuckDb,
    "Polars": _Polars,
}


_NO_NULLS = {"deltalake", "DuckDB"}
"""Readers that use the datasets of deltalake: these are wrong for IS NULL if a file is older than the column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question to a reader: the column, and the value that rows must have in it."""

    path: Path
    value: Any
    offset: int


def check_readers(uri: str, session: SparkSession | None = None) -> list[dict[str, Any]]:
    """Check that the readers read the same rows, and that each finds a row by each of its values.

    Args:
        uri: a typed table of one partition.
        session: asks Spark too, which takes seconds.

    Returns:
        The rows in the order of their offsets.

    Raises:
        AssertionError: a reader gives other rows than the others, or loses a row by a filter.
    """
    table = DeltaTable(uri)
    opened: dict[str, Callable[[DeltaTable], AskedReader]] = dict(READERS)
    if session is not None:
        opened["Spark"] = lambda table: _Spark(table, session)
    rows: list[dict[str, Any]] = []
    for name, open_reader in opened.items():
        reader = open_reader(table)
        read = reader.rows().sort_by(OFFSET)
        own = read.select([column for column in rows[0] if column in read.schema.names] if rows else read.schema.names)
        values = own.to_pylist()
        rows = rows or values
        if name != "Spark":  # it gives times in local time, and maps and bytes in forms of its own
            assert [comparable(row) for row in values] == [comparable(row) for row in rows], name
        assert [row[OFFSET] for row in values] == [row[OFFSET] for row in rows], name
        for asked in _questions(read):
            if (asked.value is None and name in _NO_NULLS) or (name == "Spark" and asked.value == 0):
                continue  # a filter of Spark for 0.0 or -0.0 does not find the other one in a Parquet file
            stored = reader.found(asked.path, asked.value, in_memory=False)
            held = reader.found(asked.path, asked.value, in_memory=True)
            assert stored == held, f"{name} finds {stored} and not {held} with {asked}"
            assert asked.offset in stored or asked.value != asked.value, f"{name} does not find {asked}"
    return rows


def type_at(schema: pa.Schema, path: Path) -> pa.DataType:
    """The type of a column, or of a member of a struct."""
    kind = schema.field(path[0]).type
    for member in path[1:]:
        kind = kind.field(member).type
    return kind


def _questions(rows: pa.Table) -> Iterator[Asked]:
    """Each value of each scalar column of the fields, and null."""
    for column in rows.schema:
        if not column.name.startswith("_kafka_") or column.name.startswith("_kafka_key_"):
            for path in _scalars(column.type, (column.name,)):
                yield from _of_column(rows, path)


def _scalars(kind: pa.DataType, path: Path) -> Iterator[Path]:
    if pa.types.is_struct(kind):
        for member in kind:
            yield from _scalars(member.type, (*path, member.name))
    elif not pa.types.is_nested(kind):
        yield path


def _of_column(rows: pa.Table, path: Path) -> Iterator[Asked]:
    asked = set[str]()
    for row in rows.select([OFFSET, path[0]] if path[0] != OFFSET else [OFFSET]).to_pylist():
        value = row
        for name in path:
            value = None if value is None else value[name]
        if repr(value) not in asked:
            asked.add(repr(value))
            yield Asked(path=path, value=value, offset=row[OFFSET])


def comparable(value: Any) -> Any:
    """A value in a form in which NaN equals NaN, -0.0 is not 0.0, and libraries agree on maps and zones."""
    if isinstance(value, Mapping):
        return {name: comparable(member) for name, member in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        if value and all(isinstance(item, tuple) for item in value):
            return {name: comparable(member) for name, member in value}
        return [comparable(item) for item in value]
    if isinstance(value, float):
        return repr(value)
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value
