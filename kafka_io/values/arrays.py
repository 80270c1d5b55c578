"""The values of an Arrow array as kernels take them: bytes, and positions in them."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafka_io.jit.scalars import ByteArray, Int32s, read_only


def bytes_of(values: pa.BinaryArray) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """The bytes of all values, and n + 1 positions in them: the start of the first value, and the end of each."""
    _, ends, data = values.buffers()
    if not len(values) or ends is None:
        return read_only(b""), np.frombuffer(bytes(4), np.int32)
    positions = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1]
    positions.flags.writeable = False  # numba compiles a kernel again for each kind of array
    return read_only(data if data is not None and data.size else b""), positions


def bodies_of(values: pa.BinaryArray) -> tuple[ByteArray, Int32s, Int32s]:
    """The bytes of all values, the start of each value in them (-1 for null), and the end of each value."""
    data, positions = bytes_of(values)
    return data, marked(positions[:-1].copy(), values), positions[1:]


def marked(starts: Int32s, values: pa.BinaryArray) -> Int32s:
    """`starts` with -1 for each null value."""
    if values.null_count:
        starts[values.is_null().to_numpy(zero_copy_only=False)] = -1
    return starts
