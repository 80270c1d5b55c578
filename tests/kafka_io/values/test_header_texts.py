"""The texts of headers by name: the last one counts, and every record has one text or none."""

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_io.values.header_texts import header_texts
from pipelines.layout.rows import FILE_SCHEMA

# fault F15

Record = Sequence[tuple[str, bytes | None]] | None


def headers(*records: Record) -> pa.ListArray:
    items = [None if record is None else [{"key": key, "value": value} for key, value in record] for record in records]
    return pa.array(items, FILE_SCHEMA.field("headers").type)


def texts(array: pa.ListArray, *names: str) -> list[list[str | None]]:
    return [column.to_pylist() for column in header_texts(array, names)]


def test_each_name_has_a_text_of_each_record() -> None:
    array = headers([("ce_id", b"1"), ("ce_type", b"a")], None, [("other", b"x")], [("ce_type", "\u00fc".encode())])
    assert texts(array, "ce_id", "ce_type", "lost") == [
        ["1", None, None, None],
        ["a", None, None, "\u00fc"],
        [None] * 4,
    ]


def test_the_last_header_of_a_name_counts() -> None:
    array = headers([("a", b"1"), ("b", b"2"), ("a", b"3")], [("a", b"4"), ("a", None)], [("a", None), ("a", b"5")])
    assert texts(array, "a", "b") == [["3", None, "5"], ["2", None, None]]


def test_content_that_is_not_utf8_is_null() -> None:
    assert texts(headers([("a", b"\xff")], [("a", b"1")], [("a", b"ok"), ("a", b"\xc3")]), "a") == [[None, "1", None]]


@pytest.mark.parametrize("array", [headers(), headers(None), headers([], None), headers([("a", b"1")], None).slice(1)])
def test_records_without_headers_have_no_texts(array: pa.ListArray) -> None:
    assert texts(array, "a") == [[None] * len(array)]


HEADER = st.tuples(st.sampled_from(["a", "b", "A"]), st.none() | st.binary(max_size=3))


@settings(deadline=None)
@given(records=st.lists(st.none() | st.lists(HEADER, max_size=4), max_size=6), start=st.integers(0, 3))
def test_texts_are_those_of_reading_record_by_record(records: list[Record], start: int) -> None:
    def text(record: Record, name: str) -> str | None:
        contents = [content for key, content in record or () if key == name]
        try:
            return contents[-1].decode() if contents and contents[-1] is not None else None
        except UnicodeDecodeError:
            return None

    array = headers(*records).slice(start)
    expected = [[text(record, name) for record in records[start:]] for name in ("a", "b")]
    assert texts(array, "a", "b") == expected
