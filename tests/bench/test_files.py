"""Rows reach the files of the other loaders, and files with missing or wrong rows are refused."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.bench.files import Content, PartitionFiles, Rows, WrongRows, check, check_typed

HEADERS = [("trace", b"1")]


def rows(offsets: Sequence[int], value: bytes = b"value") -> Rows:
    count = len(offsets)
    return Rows(
        keys=[b"key"] * count,
        values=[value] * count,
        offsets=offsets,
        timestamps=[1_700_000_000_000] * count,
        types=[0] * count,
        headers=[HEADERS] * count,
    )


def write(folder: Path, offsets: Sequence[Sequence[int]], value: bytes = b"value") -> None:
    with PartitionFiles(folder, "events") as files:
        for partition, partition_offsets in enumerate(offsets):
            files.write(partition, rows(partition_offsets, value))


def test_files_with_all_records_of_the_topic_are_accepted(tmp_path: Path) -> None:
    write(tmp_path, [range(3)] * 4)
    check(tmp_path, Content.expected(12, 12 * 5))


@pytest.mark.parametrize(
    ("offsets", "value"),
    [
        ([range(3), range(3), range(3), range(2)], b"value"),
        ([range(3), range(3), range(3), [0, 1, 1]], b"value"),
        ([range(3), range(3), range(3), [0, 1, 2, 2]], b"value"),
        ([range(3)] * 4, b"valu"),
    ],
    ids=["one is missing", "one stands for another", "one is there twice", "values are cut"],
)
def test_files_with_missing_or_wrong_rows_are_refused(
    tmp_path: Path, offsets: Sequence[Sequence[int]], value: bytes
) -> None:
    write(tmp_path, offsets, value)
    with pytest.raises(WrongRows):
        check(tmp_path, Content.expected(12, 12 * 5))


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongRows):
        check(tmp_path, Content.expected(4, 4))


def test_rows_arrive_with_all_their_columns(tmp_path: Path) -> None:
    with PartitionFiles(tmp_path, "events") as files:
        files.write(2, rows([7, 8]))
        files.write(
            2,
            Rows(keys=[None], values=[None], offsets=[9], timestamps=[5], types=[1], headers=[None]),
        )
    read = pq.read_table(tmp_path / "2.parquet").to_pylist()
    assert [row["offset"] for row in read] == [7, 8, 9]
    assert read[0]["headers"] == [{"key": "trace", "value": b"1"}]
    assert (read[0]["topic"], read[0]["partition"], read[0]["key"], read[0]["value"]) == ("events", 2, b"key", b"value")
    assert (read[2]["key"], read[2]["headers"], read[2]["timestampType"]) == (None, [], 1)


def test_decoded_values_become_columns_beside_those_of_the_record(tmp_path: Path) -> None:
    columns = pa.schema({"id": pa.int64(), "tags": pa.list_(pa.string())})
    with PartitionFiles(tmp_path, "events", columns) as files:
        for partition in range(4):
            decoded = [{"id": partition * 2 + offset, "tags": ["a"]} for offset in range(2)]
            files.write(partition, replace(rows([0, 1]), values=decoded))
    check_typed(tmp_path, 8)
    [row, _] = pq.read_table(tmp_path / "3.parquet").to_pylist()
    shown = ("id", "tags", "_kafka_key", "_kafka_partition", "_kafka_offset", "_kafka_topic")
    assert [row[name] for name in shown] == [6, ["a"], b"key", 3, 0, "events"]
    assert "value" not in row


@pytest.mark.parametrize(
    ("ids", "error"),
    [([0, 1, 2, 3], None), ([0, 1, 2, 2], "(4, 3, 0)"), ([0, 1, 2, None], "(4, 3, 0)"), ([0, 1, 2], "(3, 3, 0)")],
    ids=["complete", "a record twice", "a record that was not decoded", "a record is missing"],
)
def test_typed_files_have_each_record_once(ids: list[int | None], error: str | None, tmp_path: Path) -> None:
    for partition, id_ in enumerate(ids):
        rows = pa.table({"id": pa.array([id_], pa.int64()), "_kafka_offset": [0]})
        pq.write_table(rows, tmp_path / f"{partition}.parquet")
    if error is None:
        check_typed(tmp_path, 4)
    else:
        with pytest.raises(WrongRows, match=re.escape(error)):
            check_typed(tmp_path, 4)
