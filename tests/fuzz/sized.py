"""Several values in one input of the fuzzer: each after its size."""

from collections.abc import Iterable

_SIZE_BYTES = 4


def joined(values: Iterable[bytes]) -> bytes:
    """The values, each after its size."""
    return b"".join(len(value).to_bytes(_SIZE_BYTES, "big") + value for value in values)


def parted(data: bytes) -> list[bytes]:
    """The inverse of `joined`."""
    values = []
    while data:
        end = _SIZE_BYTES + int.from_bytes(data[:_SIZE_BYTES], "big")
        values.append(data[_SIZE_BYTES:end])
        data = data[end:]
    return values
