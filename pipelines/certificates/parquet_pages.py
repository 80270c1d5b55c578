"""The bytes of a Parquet file as a search needs them: each page of text decompressed, and all that is outside of pages.

A reader of rows shows less: a dictionary page can have values that no row has, and headers of pages and the footer have
the smallest and the largest values. A page begins with its header in the compact protocol of Thrift.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.certificates.searched_texts import NotSearchable

_TEXT = "BYTE_ARRAY"
_SPLIT = frozenset({"DELTA_BYTE_ARRAY"})
"""Encodings in which a value is not one run of bytes: it shares its beginning with the value before it."""
_CODECS = {"LZ4": "lz4_raw"}
_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE, _DATA_PAGE_V2 = 2, 3, 8
_DEFINITION_BYTES, _REPETITION_BYTES, _IS_COMPRESSED = 5, 6, 7
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
"""The types of the compact protocol. A boolean has no bytes, because its type is its value."""
_SIZES = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}
_LONG_LIST, _MORE = 15, 0x80
_Fields = dict[int, Any]


class SearchedPart(NamedTuple):
    """A part of a Parquet file.

    Args:
        column: the path of the column of a page; None for what is outside of pages.
        content: its bytes, decompressed.
    """

    column: str | None
    content: bytes


def searched_parts(file: pa.NativeFile) -> Iterator[SearchedPart]:
    """The pages of columns of text, decompressed, and everything outside of pages: headers, indexes and the footer.

    Pages of numbers are left out: a search for a text would find it in them by chance.

    Raises:
        NotSearchable: a page cannot be decompressed, or the file is no Parquet file.
    """
    try:
        opened, position = pq.ParquetFile(file), 0
        for column, group in sorted(_chunks(opened.metadata), key=lambda chunk: _start(chunk[0])):
            yield SearchedPart(None, _read(file, position, _start(column)))
            position = _start(column) + column.total_compressed_size
            yield from _pages(_read(file, _start(column), position), column)
            if column.physical_type == _TEXT and not _SPLIT.isdisjoint(column.encodings):
                yield from _values(opened, group, column.path_in_schema)
        yield SearchedPart(None, _read(file, position, file.size()))
    except (pa.ArrowException, IndexError, KeyError, OSError) as error:
        raise NotSearchable(f"a page cannot be decompressed ({type(error).__name__})") from error


def _chunks(metadata: pq.FileMetaData) -> Iterator[tuple[pq.ColumnChunkMetaData, int]]:
    """The column chunks of a file, with the numbers of their row groups."""
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            yield metadata.row_group(group).column(number), group


def _start(column: pq.ColumnChunkMetaData) -> int:
    first: int = column.data_page_offset
    return min(first, column.dictionary_page_offset or first)


def _read(file: pa.NativeFile, start: int, stop: int) -> bytes:
    file.seek(start)
    content: bytes = file.read(max(0, stop - start))
    return content


def _pages(chunk: bytes, column: pq.ColumnChunkMetaData) -> Iterator[SearchedPart]:
    """The pages of a column chunk, and their headers."""
    codec, position = str(column.compression), 0
    while position < len(chunk):
        header = _ThriftReader(chunk, position)
        fields = header.struct()
        stop = header.position + fields[_COMPRESSED_SIZE]
        yield SearchedPart(None, chunk[position : header.position])
        if column.physical_type == _TEXT:
            yield SearchedPart(column.path_in_schema, _decompressed(chunk[header.position : stop], fields, codec))
        position = stop


def _decompressed(page: bytes, header: "_Fields", codec: str) -> bytes:
    """A page as it was before it was compressed. In the second version of pages, the levels before it are not."""
    second = header.get(_DATA_PAGE_V2)
    levels = 0 if second is None else second[_DEFINITION_BYTES] + second[_REPETITION_BYTES]
    size = header[_UNCOMPRESSED_SIZE] - levels
    if codec == "UNCOMPRESSED" or not size or (second is not None and not second.get(_IS_COMPRESSED, True)):
        return page
    data: bytes = pa.decompress(page[levels:], size, codec=_CODECS.get(codec, codec.lower()), asbytes=True)
    return data


def _values(file: pq.ParquetFile, group: int, path: str) -> Iterator[SearchedPart]:
    """The values of a column one after the other, as its reader sees them."""
    column = file.read_row_group(group, columns=[path]).column(0)
    for leaf in _leaves(column.chunks):
        yield SearchedPart(path, b"\0".join(map(_bytes, leaf.drop_null().to_pylist())))


def _leaves(arrays: Iterable[pa.Array]) -> Iterator[pa.Array]:
    for array in arrays:
        if pa.types.is_nested(array.type):
            inner = array.flatten()
            yield from _leaves(inner if isinstance(inner, list) else [inner])
        else:
            yield array


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


class _ThriftReader:
    """Reads structs in the compact protocol. Only numbers, booleans and structs are kept."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data, self.position = data, position

    def struct(self) -> _Fields:
        """The fields of a struct by their numbers."""
        fields: _Fields = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = self._value(head & 15)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in {_TRUE, _FALSE}:
            return kind == _TRUE
        if kind in {_I16, _I32, _I64}:
            return self._integer()
        if kind == _STRUCT:
            return self.struct()
        if kind in {_LIST, _SET}:
            self._pass_list()
        else:
            size = self._varint() if kind == _BINARY else _SIZES[kind]
            self.position += size
        return None

    def _pass_list(self) -> None:
        head = self._byte()
        size = head >> 4
        for _ in range(self._varint() if size == _LONG_LIST else size):
            self._value(head & 15)

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) >= _MORE:
            value |= (byte - _MORE) << shift
            shift += 7
        return value | byte << shift

    def _byte(self) -> int:
        self.position += 1
        return self._data[self.position - 1]
