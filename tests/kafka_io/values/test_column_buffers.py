"""The memory of decoders: what does not fit into a batch is an error, and never other rows."""

import itertools

import pyarrow as pa
import pytest

from kafka_io.errors import TooLarge
from kafka_io.values.column_buffers import ColumnBuffers
from kafka_io.values.kernels.column_buffers import BYTES, CELL, ITEMS


def test_a_column_that_32_bit_offsets_cannot_address_is_an_error() -> None:
    buffers = ColumnBuffers(pa.schema([("x", pa.list_(pa.string()))]))
    buffers.start(1)
    buffers.counts[:2] = 1
    buffers.cells[buffers.table[1, CELL] + 1] = 2**31
    with pytest.raises(TooLarge, match="column x has more than 2 GiB"):
        buffers.take()


def test_all_buffers_grow_at_once_to_what_the_batch_will_need() -> None:
    columns = ["first", "second", "third"]
    buffers = ColumnBuffers(pa.schema([(name, pa.list_(pa.string())) for name in columns]))
    buffers.start(1000)
    buffers.counts[1:7] = 30
    buffers.counts[0] = 10
    texts = [2, 4, 6]
    for node in texts:
        buffers.cells[buffers.table[node, CELL] + 30] = 3000
    buffers.grow(texts[0], 5000)
    assert (buffers.table[texts, BYTES] >= 300_000).all()
    assert (buffers.table[texts, ITEMS] >= 3000).all()
    assert (buffers.table[texts, BYTES] < 400_000).all()


def test_a_batch_whose_first_row_is_the_only_large_one_takes_no_memory_for_the_others() -> None:
    buffers = ColumnBuffers(pa.schema([("x", pa.string())]))
    buffers.start(100_000)
    buffers.grow(1, 1_000_000)
    buffers.counts[:2] = 1
    buffers.cells[buffers.table[1, CELL] + 1] = 1_000_000
    buffers.grow(1, 10_000)
    assert len(buffers.content) < 5_000_000


def test_a_row_with_many_texts_in_one_buffer_gets_more_room_each_time() -> None:
    """While a kernel fills such a row, the counts are still those of the row's beginning."""
    buffers = ColumnBuffers(pa.schema([("x", pa.list_(pa.string()))]))
    buffers.start(10)
    rooms = [int(buffers.table[2, BYTES])]
    for _ in range(5):
        buffers.grow(2, 100)
        rooms.append(int(buffers.table[2, BYTES]))
    assert all(later >= 2 * earlier for earlier, later in itertools.pairwise(rooms))
