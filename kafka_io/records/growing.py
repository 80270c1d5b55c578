"""Columns that grow while messages are decoded into them, and become an Arrow batch without a copy."""

import numpy as np
import pyarrow as pa

from kafka_io.records.kernels import sets as set_kernels
from kafka_io.records.layout import LEAST_LENGTH, LENGTH_BYTES
from kafka_io.records.memory import Growing
from kafka_io.records.sets import MessageSet

# 0.7 has neither keys nor times. `offset` is where the outermost message starts; `inner` tells apart those that were
# compressed in one (facts, 5), and is 0 for a plain message.
SCHEMA_07 = pa.schema([("offset", pa.int64()), ("inner", pa.int32()), ("value", pa.binary())])

_LEAST_MESSAGE = LENGTH_BYTES + LEAST_LENGTH


class Columns:
    """The columns of SCHEMA_07: `rows` are filled, with `used` bytes of values."""

    def __init__(self) -> None:
        self.rows = 0
        self.used = 0
        self._offsets, self._inner = Growing(np.int64), Growing(np.int32)
        self._ends, self._values = Growing(np.int32), Growing(np.uint8)
        self._ends.grow(0, 1)
        self._ends.array[0] = 0

    def take(self, source: MessageSet, *, most: int) -> int:
        """Decode the plain messages of `source` from where it stands; why that stopped, as a status of `kernels`.

        Args:
            source: left standing at the message that was not decoded.
            most: stop once the columns hold so many bytes.
        """
        self._reserve(source.left)
        status, source.at, self.rows, self.used = set_kernels.decode(
            source.array,
            source.at,
            source.base,
            source.step,
            source.first,
            most,
            self._offsets.array,
            self._inner.array,
            self._ends.array,
            self._values.array,
            self.rows,
            self.used,
        )
        return status

    def _reserve(self, message_bytes: int) -> None:
        """Room for whatever so many bytes of messages can hold; pages that stay untouched cost nothing."""
        rows, used = self.rows + message_bytes // _LEAST_MESSAGE, self.used + message_bytes
        if rows > len(self._offsets.array):
            rows = max(rows, 2 * len(self._offsets.array))
            self._offsets.grow(self.rows, rows)
            self._inner.grow(self.rows, rows)
            self._ends.grow(self.rows + 1, rows + 1)
        if used > len(self._values.array):
            self._values.grow(self.used, max(used, 2 * len(self._values.array)))

    def to_batch(self) -> pa.RecordBatch:
        """The filled rows; the columns are given away, not copied."""
        offsets, inner = self._offsets.buffer(self.rows), self._inner.buffer(self.rows)
        ends, values = self._ends.buffer(self.rows + 1), self._values.buffer(self.used)
        arrays = [
            pa.Array.from_buffers(pa.int64(), self.rows, [None, offsets]),
            pa.Array.from_buffers(pa.int32(), self.rows, [None, inner]),
            pa.Array.from_buffers(pa.binary(), self.rows, [None, ends, values]),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA_07)
