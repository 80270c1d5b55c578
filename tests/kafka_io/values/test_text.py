"""A text is UTF-8, and a value that is not fails alone."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_io.values.columns import FIELD
from kafka_io.values.text import TextDecoder

COLUMNS = pa.schema([pa.field("value", pa.string())])


@given(st.lists(st.none() | st.binary(max_size=6) | st.text(max_size=4).map(str.encode), max_size=40))
def test_each_value_that_is_utf8_is_a_text_and_each_other_fails_alone(values: list[bytes | None]) -> None:
    decoded = TextDecoder(COLUMNS).decode(pa.array(values, pa.binary()))
    expected: list[str | None] = []
    bad = []
    for row, value in enumerate(values):
        try:
            expected.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            expected.append(None)
            bad.append(row)
    assert decoded.rows.column("value").to_pylist() == expected
    assert [failure.row for failure in decoded.failures] == bad
    assert all(failure.reason.isprintable() for failure in decoded.failures)


def test_a_slice_of_an_array_is_decoded_from_its_own_start() -> None:
    values = pa.array([b"\xff", b"a", b"\xff", b"b"], pa.binary()).slice(1)
    decoded = TextDecoder(COLUMNS).decode(values)
    assert decoded.rows.column("value").to_pylist() == ["a", None, "b"]
    assert [failure.row for failure in decoded.failures] == [1]


@pytest.mark.parametrize("columns", [[], [pa.field("value", pa.int64())]])
def test_a_table_without_a_column_for_texts_gets_none(columns: list[pa.Field]) -> None:
    decoded = TextDecoder(pa.schema(columns)).decode(pa.array([b"a"], pa.binary()))
    assert decoded.rows.num_columns == len(columns)
    assert all(column.null_count == 1 for column in decoded.rows.columns)


def test_the_text_goes_into_the_column_of_its_field() -> None:
    columns = pa.schema([pa.field("value", pa.int64()), pa.field("value_2", pa.string(), metadata={FIELD: b"value"})])
    [row] = TextDecoder(columns).decode(pa.array([b"a"], pa.binary())).rows.to_pylist()
    assert row == {"value": None, "value_2": "a"}
