"""CRC-32C by the machine's own instruction, or where that package is not to be had by crcmod, which is far slower."""

from collections.abc import Callable
from typing import cast

from kafka_io.compression import Bytes

try:
    from crc32c import crc32c as _crc32c
except ImportError:
    from crcmod.predefined import mkPredefinedCrcFun

    _crc32c = mkPredefinedCrcFun("crc-32c")

crc32c = cast("Callable[[Bytes], int]", _crc32c)
