"""The file of a slice is written in row groups and forced to disk; no filter loses rows by its statistics."""

import gc
import resource
import sys
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.fetch import slice_file
from pipelines.fetch.slice_file import SliceFile
from pipelines.layout.file_statistics import column_stats, file_stats
from pipelines.layout.layout import RAW
from pipelines.layout.rows import FILE_SCHEMA, table_rows
from resources.errors import LakeUnavailable
from resources.stores import durable

if TYPE_CHECKING:
    from tests.small_table import SmallTable


@pytest.mark.parametrize(
    ("column", "condition", "rows"),
    [
        ("topic", "= 'clicks'", 5),
        ("topic", "= 'views'", 0),
        ("broker", "= 0", 5),
        ("partition", "< 1", 5),
        ("offset", ">= 20", 3),
        ("inner", "= 0", 5),
        ("timestamp", "IS NULL", 5),
        ("timestampRaw", "IS NULL", 5),
        ("timestampType", "IS NULL", 5),
        ("loaded_at", ">= TIMESTAMP '1970-01-01'", 5),
        ("loaded_at", "> TIMESTAMP '2020-01-01'", 0),
        ("key", "IS NULL", 5),
        ("value", "= 'x'::BLOB", 5),
        ("headers", "IS NULL", 5),
        ("date", "= DATE '2026-01-02'", 5),
    ],
)
def test_a_filter_finds_its_rows_through_the_log(column: str, condition: str, rows: int, small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    dataset = small.handle().to_pyarrow_dataset()
    with duckdb.connect() as database:
        database.register("held", dataset)
        assert database.execute(f'SELECT count(*) FROM held WHERE "{column}" {condition}').fetchall() == [(rows,)]


def test_a_filter_on_a_column_without_values_finds_none_and_loses_none(small: "SmallTable") -> None:
    small.commit(small.write(0, 50))
    dataset = small.handle().to_pyarrow_dataset()
    assert dataset.count_rows(filter=pc.field("timestamp").is_null()) == 5
    assert dataset.count_rows(filter=pc.field("timestamp") > pa.scalar(0, FILE_SCHEMA.field("timestamp").type)) == 0


def test_statistics_cover_all_row_groups_and_count_nulls(tmp_path: Path) -> None:
    decoded = pa.RecordBatch.from_pydict(
        {
            "offset": pa.array([5, 6, 9], pa.int64()),
            "timestamp": pa.array([2_000_123, None, 1_000_456], pa.timestamp("us", tz="UTC")),
        }
    )
    file = tmp_path / "file.parquet"
    rows = table_rows(decoded, {"topic": "clicks", "partition": 3, "loaded_at": 0})
    pq.write_table(pa.Table.from_batches([rows]), file, row_group_size=1)
    assert file_stats(pq.read_metadata(file)) == {
        "numRecords": 3,
        "minValues": {
            "topic": "clicks",
            "partition": 3,
            "offset": 5,
            "timestamp": "1970-01-01T00:00:01.000456Z",
            "loaded_at": "1970-01-01T00:00:00.000000Z",
        },
        "maxValues": {
            "topic": "clicks",
            "partition": 3,
            "offset": 9,
            "timestamp": "1970-01-01T00:00:02.000123Z",
            "loaded_at": "1970-01-01T00:00:00.000000Z",
        },
        "nullCount": {
            "topic": 0,
            "broker": 3,
            "partition": 0,
            "offset": 0,
            "timestamp": 1,
            "timestampRaw": 3,
            "timestampType": 3,
            "inner": 3,
            "loaded_at": 0,
        },
    }


@pytest.mark.parametrize(
    ("numbers", "bounds"),
    [
        ([1.5, inf, None], (1.5, "Infinity")),
        ([-inf, -0.0], ("-Infinity", -0.0)),
        ([nan, nan], ("-Infinity", "Infinity")),
        ([None], (None, None)),
    ],
)
def test_the_bounds_of_numbers_can_be_infinite(  # fault A20
    numbers: list[float | None], bounds: tuple[Any, Any], tmp_path: Path
) -> None:
    pq.write_table(pa.table({"x": pa.array(numbers, pa.float64())}), tmp_path / "file.parquet")
    stats = column_stats(pq.read_metadata(tmp_path / "file.parquet"), {"x": pa.float64()})
    assert (stats["minValues"].get("x"), stats["maxValues"].get("x")) == bounds


@pytest.mark.parametrize(
    ("numbers", "bounds"),
    [
        (["0E-13", "1.5"], ("0.0000000000000", "1.5000000000000")),
        (["-1E-13"], ("-0.0000000000001", "-0.0000000000001")),
        (["9" * 25 + "." + "9" * 13], ("9" * 25 + "." + "9" * 13, "9" * 25 + "." + "9" * 13)),
    ],
)
def test_the_bounds_of_decimals_have_no_exponent(  # fault A22
    numbers: list[str], bounds: tuple[str, str], tmp_path: Path
) -> None:
    kind = pa.decimal128(38, 13)
    pq.write_table(pa.table({"x": pa.array(map(Decimal, numbers), kind)}), tmp_path / "file.parquet")
    stats = column_stats(pq.read_metadata(tmp_path / "file.parquet"), {"x": kind})
    assert (stats["minValues"]["x"], stats["maxValues"]["x"]) == bounds


def written(folder: Path, batches: int, below: str = "date=2026-01-02") -> SliceFile:
    """The file of a slice with so many batches of one row."""
    task = Mock(table_uri=str(folder), folder=below, file_name="part", options={}, layout=RAW)
    task.parquet_codec = "zstd"
    file = SliceFile(task)
    with file:
        for offset in range(batches):
            columns = {"offset": pa.array([offset], pa.int64()), "value": pa.array([b"canary"])}
            decoded = pa.RecordBatch.from_pydict(columns)
            file.write(table_rows(decoded, {"topic": "clicks", "partition": 0, "loaded_at": 0}))
    return file


@pytest.mark.parametrize(("group_bytes", "groups"), [(1, 3), (1_000_000, 1)])
def test_batches_share_a_row_group_until_it_is_large_enough(
    group_bytes: int, groups: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slice_file, "ROW_GROUP_BYTES", group_bytes)
    file = written(tmp_path, 3)
    metadata = pq.read_metadata(tmp_path / file.path)
    assert (metadata.num_rows, metadata.num_row_groups) == (3, groups)


def test_a_file_can_be_in_new_folders(tmp_path: Path) -> None:
    file = written(tmp_path, 1, below="_staged/run/date=2026-01-02")
    assert (tmp_path / file.path).stat().st_size == file.size


def test_a_reader_can_see_that_a_page_was_damaged(tmp_path: Path) -> None:  # fault A14
    path = tmp_path / written(tmp_path, 1).path
    content = bytearray(path.read_bytes())
    content[content.index(b"canary")] ^= 1
    path.write_bytes(content)
    assert pq.read_table(path, partitioning=None)["value"].to_pylist() != [b"canary"]
    with pytest.raises(OSError, match="CRC checksum"):
        pq.read_table(path, partitioning=None, page_checksum_verification=True)


def test_a_file_is_forced_to_disk_before_it_can_be_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[Path, Path]] = []
    monkeypatch.setattr(durable, "sync_below", lambda root, path, _: synced.append((root, path)))
    file = written(tmp_path, 1)
    assert synced == [(tmp_path, tmp_path / file.path)]


@pytest.mark.parametrize(
    ("limit", "group_bytes"),
    [(0, 1_000_000), (500, 1_000_000), (500, 1), (1000, 1_000_000)],
    ids=["begin", "rows", "first of several groups", "footer"],
)
def test_a_full_disk_is_one_error_wherever_the_file_ends(
    limit: int, group_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault L09
    """Pyarrow closes a writer that has failed once more, and again when it is freed. That must not hide the reason."""
    monkeypatch.setattr(slice_file, "ROW_GROUP_BYTES", group_bytes)
    printed_later: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", printed_later.append)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(LakeUnavailable, match="file too large"):
            written(tmp_path, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    gc.collect()
    assert printed_later == []
    assert not list(tmp_path.rglob("*.parquet"))  # fault E21
