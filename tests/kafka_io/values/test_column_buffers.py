"""The memory of decoders: what does not fit into a batch is an error, and never other rows."""

import pyarrow as pa
import pytest

from kafka_io.errors import TooLarge
from kafka_io.values.column_buffers import ColumnBuffers
from kafka_io.values.kernels.column_buffers import CELL


def test_a_column_that_32_bit_offsets_cannot_address_is_an_error() -> None:
    buffers = ColumnBuffers(pa.schema([("x", pa.list_(pa.string()))]))
    buffers.start(1)
    buffers.counts[:2] = 1
    buffers.cells[buffers.table[1, CELL] + 1] = 2**31
    with pytest.raises(TooLarge, match="column x has more than 2 GiB"):
        buffers.take()
