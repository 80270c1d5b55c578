"""The rows of a file have the types and the nulls of Spark's Kafka source."""

from typing import Any

import pyarrow as pa
import pytest

from kafka_io.records.build import Record, record_batch
from kafka_io.records.decoder import decode
from kafka_io.records.record_set import RequestedOffsets
from pipelines.layout.rows import FILE_SCHEMA, table_rows, without_empty_lists

LISTS = pa.list_(pa.int64())


def headers_of(*headers: tuple[tuple[bytes, bytes | None], ...]) -> list[Any]:
    """The column `headers` of a file for records with these headers."""
    records = [Record(offset=offset, headers=pairs) for offset, pairs in enumerate(headers)]
    [decoded] = decode(record_batch(records), RequestedOffsets(start=0))
    rows = table_rows(decoded.batch, {})
    rows.validate(full=True)
    assert rows.schema == FILE_SCHEMA
    column: list[Any] = rows.column("headers").to_pylist()
    return column


# fault U14; Spark: KafkaRecordToRowConverter.toInternalRowWithHeaders
@pytest.mark.parametrize("with_headers", [(), (1,), (0, 2), (0, 1, 2)], ids=str)
def test_a_record_without_headers_has_null_as_in_spark(with_headers: tuple[int, ...]) -> None:
    pairs = ((b"a", b"1"), (b"a", None))
    expected = [{"key": "a", "value": b"1"}, {"key": "a", "value": None}]
    column = headers_of(*(pairs if number in with_headers else () for number in range(3)))
    assert column == [expected if number in with_headers else None for number in range(3)]


@pytest.mark.parametrize("start", range(5))
@pytest.mark.parametrize("size", range(5))
def test_empty_lists_become_null_also_in_a_slice(start: int, size: int) -> None:
    lists = pa.array([[1], [], None, [2, 3], [], [4]], LISTS)
    result = without_empty_lists(lists.slice(start, size))
    result.validate(full=True)
    assert result.to_pylist() == [item or None for item in lists.slice(start, size).to_pylist()]
