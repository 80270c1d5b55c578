"""Machine code of other libraries that kernels call: what Python would cost on the way is more than the work itself."""

import ctypes
from contextlib import suppress

import llvmlite.binding
from isal import isal_zlib

CRC32 = "penstock_crc32"


def _publish_crc32() -> bool:
    """Let kernels call isal's CRC-32 by the name CRC32; whether its library lets itself be asked for that.

    It takes a uint32 to go on from, where the bytes are, and how many; and gives a uint32.
    """
    with suppress(OSError, AttributeError, TypeError):
        function = ctypes.CDLL(isal_zlib.__file__).crc32_gzip_refl
        address = ctypes.cast(function, ctypes.c_void_p).value
        llvmlite.binding.add_symbol(CRC32, address)
        return True
    return False


# As the kernels are imported, for machine code from a cache needs it too.
HAS_CRC32 = _publish_crc32()
