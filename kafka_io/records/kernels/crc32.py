"""CRC-32, as messages before format 2 carry it.

isal's own takes 8 ns for 200 bytes, the tables 80: a quarter of what a message of that size takes against two thirds.
The tables are for where isal's library cannot be called without Python.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from kafka_io.records.compiling import part
from kafka_io.records.kernels.scalars import Bytes
from kafka_io.records.native import CRC32, HAS_CRC32

_POLYNOMIAL = 0xEDB88320


def _make_tables() -> npt.NDArray[np.uint32]:
    """Table k holds the CRC of each byte followed by k zero bytes (slicing by 8)."""
    tables = np.empty((8, 256), np.uint32)
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = np.where(crc & 1, (crc >> 1) ^ np.uint32(_POLYNOMIAL), crc >> 1)
    tables[0] = crc
    for k in range(1, 8):
        tables[k] = tables[0][tables[k - 1] & 0xFF] ^ (tables[k - 1] >> 8)
    return tables


_TABLES = _make_tables()


@part
def by_tables(data: Bytes, start: int, end: int) -> int:
    """Of the bytes from `start` to `end`."""
    # Unsigned throughout: numba tests each signed index for being negative (20 bytes: 2.4 GB/s, and 1.5 signed).
    tables = _TABLES
    byte = np.uint64(0xFF)
    crc = np.uint64(0xFFFFFFFF)
    at, stop = np.uint64(start), np.uint64(end)
    while at + np.uint64(8) <= stop:
        word = crc
        for i in range(8):
            word ^= np.uint64(data[at + np.uint64(i)]) << np.uint64(8 * i)
        crc = np.uint64(0)
        for i in range(8):
            crc ^= np.uint64(tables[7 - i, (word >> np.uint64(8 * i)) & byte])
        at += np.uint64(8)
    while at < stop:
        crc = (crc >> np.uint64(8)) ^ np.uint64(tables[0, (crc ^ np.uint64(data[at])) & byte])
        at += np.uint64(1)
    return int(np.int64(crc ^ np.uint64(0xFFFFFFFF)))


def crc32(data: Bytes, start: int, end: int) -> int:
    """Of the bytes from `start` to `end`."""
    return int(by_tables(data, start, end))


@intrinsic  # numba gives the types of the arguments, and wants their names
def _by_isal(_context: Any, data: Any, start: Any, size: Any) -> tuple[Any, Any]:  # noqa: ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, first, count = arguments
        begin = builder.gep(context.make_array(signature.args[0])(context, builder, array).data, [first])
        word, long = ir.IntType(32), ir.IntType(64)
        kind = ir.FunctionType(word, [word, begin.type, long])
        function = cgutils.get_or_insert_function(builder.module, kind, CRC32)  # type: ignore[no-untyped-call] # numba is untyped
        return builder.zext(builder.call(function, [ir.Constant(word, 0), begin, count]), long)

    return types.int64(data, types.int64, types.int64), generate


@overload(crc32, inline="always")
def _compiled_crc32(data: Any, start: Any, end: Any) -> Any:  # noqa: ARG001 - as above
    def isals(data: Any, start: Any, end: Any) -> Any:
        return _by_isal(data, start, end - start)  # type: ignore[call-arg] # numba adds the context

    def ours(data: Any, start: Any, end: Any) -> Any:
        return by_tables(data, start, end)

    return isals if HAS_CRC32 else ours
