"""Bounds that deltalake leaves out or rounds are replaced by bounds that no value is outside of (fault A24)."""

import json
import random
from datetime import UTC, datetime, timedelta
from math import inf, nan
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from deltalake import DeltaTable, write_deltalake

from kafka_io.errors import Where
from pipelines.delta.delta_table import DeltaLakeTable
from pipelines.delta.hidden_bounds import HiddenBounds
from resources.stores.lake import Lake

_UTC = pa.timestamp("us", "UTC")
_WIDE = ('{"x":-9999999999999999999999999999999999.9999}', '{"x":9999999999999999999999999999999999.9999}')


def _mended(kind: pa.DataType, lowest: str, highest: str, *, nulls: int = 0, name: str = "x") -> tuple[str, str]:
    stats = f'{{"numRecords":2,"minValues":{{{lowest}}},"maxValues":{{{highest}}},"nullCount":{{"x":{nulls}}}}}'
    mended = HiddenBounds.of([pa.field(name, kind)]).hidden_stats("a.parquet", stats)
    assert HiddenBounds.of([pa.field(name, kind)]).hidden_stats("a.parquet", mended) == mended
    edges = msgspec.json.decode(mended, type=dict[str, msgspec.Raw])
    return bytes(edges["minValues"]).decode(), bytes(edges["maxValues"]).decode()


@pytest.mark.parametrize(
    ("kind", "bound", "expected"),
    [
        (pa.decimal128(38, 4), "1e+26", _WIDE),
        (pa.decimal128(38, 4), "9007199254740994.0", _WIDE),
        (pa.decimal128(18, 0), "12345678901234567", ('{"x":-999999999999999999}', '{"x":999999999999999999}')),
        (pa.decimal128(18, 0), "123456789012345678", ('{"x":-999999999999999999}', '{"x":999999999999999999}')),
        (pa.decimal128(38, 4), "123456789012345678901234567.8901", ('{"x":123456789012345678901234567.8901}',) * 2),
        (pa.decimal128(15, 10), "1e-10", ('{"x":0.0000000001}',) * 2),
        (pa.decimal128(15, 10), '"1E-10"', ('{"x":0.0000000001}',) * 2),
        (pa.decimal128(7, 2), "1.5", ('{"x":1.50}',) * 2),
        (pa.float64(), "1.5", ('{"x":1.5}',) * 2),
        (pa.float64(), "null", ('{"x":"-Infinity"}', '{"x":"Infinity"}')),
        (pa.int64(), "null", ('{"x":null}',) * 2),
        (
            _UTC,
            '"4888-12-25T03:07:05.449Z"',
            ('{"x":"4888-12-25T03:07:05.449Z"}', '{"x":"4888-12-25T03:07:05.449999Z"}'),
        ),
        (
            pa.timestamp("us"),
            '"2200-01-01T00:00:00.000"',
            ('{"x":"2200-01-01T00:00:00.000"}', '{"x":"2200-01-01T00:00:00.000999"}'),
        ),
        (_UTC, '"4888-12-25T03:07:05.449149Z"', ('{"x":"4888-12-25T03:07:05.449149Z"}',) * 2),
        (_UTC, '"4888-12-25T03:07:05Z"', ('{"x":"4888-12-25T03:07:05Z"}',) * 2),
        (_UTC, '"2026-12-25T03:07:05.449Z"', ('{"x":"2026-12-25T03:07:05.449Z"}',) * 2),
    ],
)
def test_a_bound_is_replaced_if_it_is_wrong(kind: pa.DataType, bound: str, expected: tuple[str, str]) -> None:
    assert _mended(kind, f'"x":{bound}', f'"x":{bound}') == expected


def test_one_missing_bound_leaves_the_other_as_it_is() -> None:
    assert _mended(pa.float32(), '"x":1.5', "") == ('{"x":1.5}', '{"x":"Infinity"}')


@pytest.mark.parametrize(("nulls", "name"), [(2, "x"), (0, "y")])
def test_a_column_without_values_or_without_a_count_gets_no_bound(nulls: int, name: str) -> None:
    assert _mended(pa.float64(), "", "", nulls=nulls, name=name) == ("{}", "{}")


def _table(folder: Path) -> DeltaLakeTable:
    return DeltaLakeTable(lake=Lake.of_table(str(folder / "t"), {}), uri=str(folder / "t"), where=Where())


def _with_nan_and_infinity(folder: Path) -> DeltaLakeTable:
    table = _table(folder)
    write_deltalake(table.uri, pa.table({"x": [inf, 1.0, -inf], "y": [nan, nan, nan], "z": [1, 2, 3]}))
    return table


def _found(table: DeltaLakeTable, value: Any) -> int:
    rows: int = DeltaTable(table.uri).to_pyarrow_dataset().count_rows(filter=pads.field("x") == value)
    return rows


def test_the_log_and_its_newest_checkpoint_are_put_right(tmp_path: Path) -> None:
    table = _with_nan_and_infinity(tmp_path)
    DeltaTable(table.uri).create_checkpoint()
    assert _found(table, inf) == 0
    scrubbed = table.scrub()
    assert (scrubbed.commits, scrubbed.others) == (1, 1)
    assert [_found(table, value) for value in (inf, -inf, 1.0)] == [1, 1, 1]
    assert (table.scrub().commits, table.scrub().others) == (0, 0)
    Path(table.uri, "_delta_log", f"{0:020}.json").unlink()  # the checkpoint has the same bounds
    assert [_found(table, value) for value in (inf, -inf, 1.0)] == [1, 1, 1]


def test_times_in_a_far_future_are_found_after_a_merge_of_files(tmp_path: Path) -> None:
    rng = random.Random(7)
    starts = [datetime(year, 12, 25, 3, 7, 5, tzinfo=UTC) for year in range(2300, 9900, 400)]
    times = [
        start + timedelta(microseconds=rng.randrange(1_000_000))
        for start in (*starts, datetime(4888, 1, 1, tzinfo=UTC))
    ]
    times.append(datetime(4888, 12, 25, 3, 7, 5, 449149, UTC))
    table = _table(tmp_path)
    for number, time in enumerate(times):
        write_deltalake(table.uri, pa.table({"x": pa.array([time], _UTC), "y": [number]}), mode="append")
    values = [pa.scalar(time, _UTC) for time in times]
    assert {_found(table, value) for value in values} == {0, 1}, "deltalake is exact now: the bounds need no more care"
    table.scrub()
    assert [_found(table, value) for value in values] == [1] * len(times)


def test_a_struct_has_no_bounds() -> None:  # fault A25
    struct = pa.struct({"a": pa.int64(), "b": pa.string()})
    assert _mended(struct, '"x":{"a":1}', '"x":{"a":1}') == ("{}", "{}")


def test_a_commit_stays_the_same_commit(tmp_path: Path) -> None:
    table = _with_nan_and_infinity(tmp_path)
    before = next(table.commits(0))
    table.scrub()
    assert next(table.commits(0)).digest == before.digest
    add = json.loads(Path(table.uri, "_delta_log", f"{0:020}.json").read_text().splitlines()[-1])["add"]
    assert json.loads(add["stats"])["minValues"] == {"x": "-Infinity", "y": "-Infinity", "z": 1}
