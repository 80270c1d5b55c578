"""The memory of decoders: what does not fit into a batch is an error, and never other rows."""

import pyarrow as pa
import pytest

from kafka_io.errors import TooLarge
from kafka_io.values.kernels.lanes import CELL
from kafka_io.values.lanes import Lanes


def test_a_column_that_32_bit_offsets_cannot_address_is_an_error() -> None:
    lanes = Lanes(pa.schema([("x", pa.list_(pa.string()))]))
    lanes.start(1)
    lanes.counts[:2] = 1
    lanes.cells[lanes.table[1, CELL] + 1] = 2**31
    with pytest.raises(TooLarge, match="column x has more than 2 GiB"):
        lanes.take()
