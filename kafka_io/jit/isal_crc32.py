"""The address of ISA-L's CRC-32 function, for kernels: a call through Python would cost more than the checksum."""

import ctypes
from contextlib import suppress

import llvmlite.binding
from isal import isal_zlib

CRC32 = "penstock_crc32"


def _publish_crc32() -> bool:
    """Register ISA-L's CRC-32 with LLVM under the name CRC32; returns whether the library exports it.

    Its signature in C: uint32 crc32_gzip_refl(uint32 initial, const uint8 *data, uint64 size).
    """
    with suppress(OSError, AttributeError, TypeError):
        function = ctypes.CDLL(isal_zlib.__file__).crc32_gzip_refl
        address = ctypes.cast(function, ctypes.c_void_p).value
        llvmlite.binding.add_symbol(CRC32, address)
        return True
    return False


# At import: machine code from the cache refers to this symbol too.
HAS_CRC32 = _publish_crc32()
