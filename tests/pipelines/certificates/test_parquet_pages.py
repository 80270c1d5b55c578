"""Each byte of a Parquet file is in one of the parts that are searched, and text is in them as it was written."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.certificates.parquet_pages import searched_parts
from pipelines.certificates.searched_texts import NotSearchable

WORD = b"zelda@a.org"


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def columns_with_word(data: bytes) -> list[str | None]:
    return [column for column, content in searched_parts(pa.BufferReader(data)) if WORD in content]


def unused_word() -> pa.Array:
    """An array whose dictionary has a word that no row has, and many others."""
    words = [*(f"other{number % 7}@a.org" for number in range(200)), WORD.decode()]
    return pa.DictionaryArray.from_arrays(pa.array([0, None, 3]), pa.array(words))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_pages_of_all_codecs_are_decompressed(codec: str, version: str) -> None:  # fault Y13
    table = pa.table({"number": [1, 2, 3], "word": unused_word(), "list": [[WORD], None, []]})
    options = {"compression": codec, "data_page_version": version, "write_statistics": False, "store_schema": False}
    data = written(table, **options)
    assert WORD.decode() not in str(pq.read_table(io.BytesIO(data), columns=["word"]).to_pylist())
    assert columns_with_word(data) == ["word", "list.list.element"]


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_values_that_share_their_beginning_are_found(encoding: str) -> None:  # fault Y13
    table = pa.table({"word": [b"zelda@a.com", WORD, b"zelda@a.orgs"], "s": [{"t": [WORD.decode()]}] * 3})
    options = {"use_dictionary": False, "write_statistics": False, "store_schema": False}
    data = written(table, column_encoding={"word": encoding, "s.t.list.element": encoding}, **options)
    assert dict.fromkeys(columns_with_word(data)) == {"word": None, "s.t.list.element": None}


def test_bounds_and_metadata_are_outside_of_pages() -> None:  # fault Y13
    bounds = written(pa.table({"word": [WORD]}), use_dictionary=False, store_schema=False)
    assert set(columns_with_word(bounds)) == {"word", None}
    index = written(pa.table({"word": [WORD]}), write_page_index=True, store_schema=False)
    assert set(columns_with_word(index)) == {"word", None}
    named = written(pa.table({WORD.decode(): [1]}))
    assert set(columns_with_word(named)) == {None}


def test_no_byte_is_left_out() -> None:
    table = pa.table({"a": ["x"] * 10_000, "b": range(10_000), "c": [[1, 2], None] * 5_000})
    data = written(table, compression="none", row_group_size=3_000)
    parts = list(searched_parts(pa.BufferReader(data)))
    outside = sum(len(content) for column, content in parts if column is None)
    text = sum(len(content) for column, content in parts if column is not None)
    chunks = [pq.ParquetFile(io.BytesIO(data)).metadata.row_group(group) for group in range(4)]
    numbers = sum(group.column(number).total_compressed_size for group in chunks for number in (1, 2))
    headers = outside + text + numbers - len(data)  # headers of pages of numbers are in a chunk, and also a part
    assert 0 < headers < 40 * len(parts)


def test_a_damaged_file_is_unreadable() -> None:
    data = written(pa.table({"word": [WORD] * 100}), compression="zstd")
    for damaged in (b"", b"PAR1", data[:-20], data[:30] + bytes(40) + data[70:]):
        with pytest.raises(NotSearchable):
            list(searched_parts(pa.BufferReader(damaged)))
