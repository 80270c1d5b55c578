"""Writes the other loaders' Parquet files with the product's options, and checks that no loader lost a row."""

import gc
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_io.closing import Closing
from pipelines.fetch.slice_file import parquet_options
from pipelines.layout.rows import DICTIONARY
from tests.bench.cases import PARQUET_CODEC, PARTITIONS

_ROW_GROUP_BYTES = 64 * 1024 * 1024
_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_TIME = pa.timestamp("ms", tz="UTC")
_PREFIX = "_kafka_"
"""The prefix of the columns of typed files that are not fields of values."""
SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", _TIME),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", pa.list_(_HEADER)),
    ]
)


class WrongRows(RuntimeError):
    """The files of a loader do not contain exactly the records of the topic."""


def disable_cycle_collector() -> None:
    """Turn off the cycle collector for a loader that holds many Python objects."""
    gc.disable()  # loaders create no cycles, but the search for cycles takes a third of the time


class OutputFile(Closing):
    """A Parquet file. It collects rows and writes complete row groups, as the product does."""

    def __init__(self, path: Path, schema: pa.Schema = SCHEMA) -> None:
        self._buffered: list[pa.RecordBatch] = []
        self._buffered_bytes = 0
        self._closing = ExitStack()
        names = [name for name in schema.names if name.removeprefix(_PREFIX) in DICTIONARY]
        writer = pq.ParquetWriter(
            path,
            schema,
            **{**parquet_options(PARQUET_CODEC), "use_dictionary": names},
        )
        self._writer = self._closing.enter_context(writer)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._buffered.append(batch)
        self._buffered_bytes += batch.nbytes
        if self._buffered_bytes >= _ROW_GROUP_BYTES:
            self._write_row_group()

    def _write_row_group(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._buffered))
        self._buffered, self._buffered_bytes = [], 0

    def close(self) -> None:
        """Write the buffered rows and the footer."""
        with self._closing:
            if self._buffered:
                self._write_row_group()


class PartitionFiles(Closing):
    """One file per partition of `topic`, for loaders that return Python objects.

    `columns` are those of decoded values, which are dicts; None means that values are bytes.
    """

    def __init__(self, folder: Path, topic: str, columns: pa.Schema | None = None) -> None:
        self._topic = pa.scalar(topic)
        self._columns = columns
        self._schema = SCHEMA if columns is None else _typed(columns)
        self._closing = ExitStack()
        paths = [folder / f"{partition}.parquet" for partition in range(PARTITIONS)]
        self._files = [self._closing.enter_context(OutputFile(path, self._schema)) for path in paths]

    def write(self, partition: int, rows: "Rows") -> None:
        """Add rows of one partition."""
        count = len(rows.offsets)
        arrays = [
            pa.array(rows.keys, pa.binary()),
            *self._decoded(rows.values),
            pa.repeat(self._topic, count),
            pa.repeat(pa.scalar(partition, pa.int32()), count),
            pa.array(rows.offsets, pa.int64()),
            pa.array(rows.timestamps, pa.int64()).view(_TIME),
            pa.array(rows.types, pa.int32()),
            _headers(rows.headers),
        ]
        self._files[partition].write(pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def _decoded(self, values: Sequence[Any]) -> Sequence[pa.Array]:
        if self._columns is None:
            return [pa.array(values, pa.binary())]
        return list(pa.array(values, pa.struct(list(self._columns))).flatten())

    def close(self) -> None:
        """Finish all files."""
        self._closing.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Columns of Python objects. `values` are bytes, or dicts if they were decoded.

    `types` has Spark's timestamp types: 0 for create time, 1 for append time.
    """

    keys: Sequence[bytes | None]
    values: Sequence[Any]
    offsets: Sequence[int]
    timestamps: Sequence[int]
    types: Sequence[int]
    headers: Sequence[Sequence[tuple[str, bytes]] | None]


def _typed(columns: pa.Schema) -> pa.Schema:
    """The columns of typed files: those of decoded values are where other files have the bytes."""
    key, _, *others = SCHEMA
    metadata = [field.with_name(_PREFIX + field.name) for field in (key, *others)]
    return pa.schema([metadata[0], *columns, *metadata[1:]])


def _headers(rows: Sequence[Sequence[tuple[str, bytes]] | None]) -> pa.Array:
    """The headers as one Arrow column. It is built from flat lists: a dict per header takes four times as long."""
    lengths = np.fromiter((len(row) if row else 0 for row in rows), np.int32, len(rows))
    pairs = [pair for row in rows if row for pair in row]
    keys = pa.array([key for key, _ in pairs], pa.string())
    values = pa.array([value for _, value in pairs], pa.binary())
    ends = np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)])
    return pa.ListArray.from_arrays(pa.array(ends), pa.StructArray.from_arrays([keys, values], fields=list(_HEADER)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Sums that show whether files contain each record of a topic exactly once."""

    rows: int
    offsets: int
    values_bytes: int

    @classmethod
    def expected(cls, records: int, values_bytes: int, partitions: int = PARTITIONS) -> Self:
        """The sums of a topic whose partitions all have the offsets 0, 1, 2 ... and the same length."""
        length = records // partitions
        return cls(rows=records, offsets=partitions * (length * (length - 1) // 2), values_bytes=values_bytes)

    @classmethod
    def of(cls, folder: Path) -> Self:
        """The sums of all raw Parquet files below `folder`."""
        rows = offsets = values_bytes = 0
        for path in folder.rglob("*.parquet"):
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(columns=["offset", "value"]):
                    rows += batch.num_rows
                    offsets += _sum(batch.column("offset"))
                    values_bytes += _sum(pc.binary_length(batch.column("value")))
        return cls(rows=rows, offsets=offsets, values_bytes=values_bytes)


def check(folder: Path, expected: Content) -> None:
    """Check the sums of all files below `folder`.

    Raises:
        WrongRows: records are missing or occur twice.
    """
    content = Content.of(folder)
    if content != expected:
        raise WrongRows(f"the files in {folder} contain {content}, not {expected}")


def check_typed(folder: Path, records: int) -> None:
    """Check that the typed files below `folder` have each record once: its offset, and the id of its event.

    Raises:
        WrongRows: records are missing, occur twice, or were not decoded.
    """
    length = records // PARTITIONS
    expected = (records, records, PARTITIONS * (length * (length - 1) // 2))
    tables = [pq.ParquetFile(path).read(columns=["id", "_kafka_offset"]) for path in folder.rglob("*.parquet")]
    rows = pa.concat_tables(tables)
    content = (rows.num_rows, pc.count_distinct(rows["id"]).as_py(), _sum(rows["_kafka_offset"]))
    if content != expected:
        raise WrongRows(f"the rows, ids and offsets of the files in {folder} add up to {content}, not {expected}")


def _sum(array: Any) -> int:
    return int(pc.sum(array).as_py() or 0)
