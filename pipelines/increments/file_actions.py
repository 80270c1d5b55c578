"""Describes new data files for the log of an output: sizes, partition values and the bounds of their columns."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from pipelines.layout.file_statistics import NO_NULLS, column_stats, with_decimals
from pipelines.layout.layout import NO_DAY


def add_action(
    path: str,
    size: int,
    footer: pq.FileMetaData,
    types: Mapping[str, pa.DataType],
    personal_nulls: Mapping[str, int] = NO_NULLS,
) -> AddAction:
    """The action that adds a file to a table. The folders of its path have the values of the partition columns.

    See `column_stats`.
    """
    decimals = {name for name, kind in types.items() if pa.types.is_decimal(kind)}
    return AddAction(
        path=path,
        size=size,
        partition_values=dict(_partition_values(Path(path).parts[1:-1])),
        modification_time=int(datetime.now(UTC).timestamp() * 1000),
        data_change=True,
        stats=msgspec.json.encode(with_decimals(column_stats(footer, types, personal_nulls), decimals)).decode(),
    )


def _partition_values(folders: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """The values of the partition columns, which Spark has written into the names of folders."""
    for folder in folders:
        name, _, value = folder.partition("=")
        yield unquote(name), None if value == NO_DAY else unquote(value)
