"""CRC-32C with the processor's instruction; without the crc32c package with crcmod, which is far slower."""

from collections.abc import Callable
from typing import cast

from kafka_io.compression import BytesLike

try:
    from crc32c import crc32c as _crc32c
except ImportError:
    from crcmod.predefined import mkPredefinedCrcFun

    _crc32c = mkPredefinedCrcFun("crc-32c")

crc32c = cast("Callable[[BytesLike], int]", _crc32c)
