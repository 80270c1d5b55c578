"""Partitioners: they choose the partition of a message, as an index into the partitions sorted by broker, then number.

A key always goes to the same partition while the number of partitions stays the same. Without a key the choice is
random. See [kafka-0.7: Producers].
"""

import random
from typing import Protocol

_MASK = 0xFFFFFFFF
_SIGN = 0x80000000
_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C
_WORD_BYTES = 4
_RUN_MESSAGES = 200


class Partitioner(Protocol):
    """Chooses one of `count` partitions.

    >>> class FirstPartition:
    ...     def choose(self, topic: str, key: bytes | None, count: int) -> int:
    ...         return 0
    >>> FirstPartition().choose("clicks", b"key", 4)
    0
    """

    def choose(self, topic: str, key: bytes | None, count: int) -> int:
        """An index from 0 to `count` - 1. Only one thread at a time calls it."""


class StringHashPartitioner:
    """Chooses like 0.7's own producer for keys that are text: by Java's hash of the string, or at random.

    >>> StringHashPartitioner().choose("clicks", b"user-1", 4)
    1
    """

    def choose(self, topic: str, key: bytes | None, count: int) -> int:  # noqa: ARG002 - the same for all topics
        """`abs(hash) % count` [kafka-0.7: Producers]."""
        if key is None:
            return random.randrange(count)  # noqa: S311 - it spreads load and keeps no secret
        return abs(string_hash(key.decode(errors="replace"))) % count


class Murmur2Partitioner:
    """Chooses like Java's clients from 0.8.2 on: by murmur2 of the key.

    Without a key, 200 messages in a row go to one partition, so they travel and compress together (KIP-480).

        >>> Murmur2Partitioner().choose("clicks", b"user-1", 4)
        0
    """

    def __init__(self) -> None:
        # By topic: the choice as a fraction, which stays valid when partitions are added, and the messages left.
        self._runs: dict[str, tuple[float, int]] = {}

    def choose(self, topic: str, key: bytes | None, count: int) -> int:
        """The hash without its sign bit, modulo `count`."""
        if key is not None:
            return (murmur2(key) & ~_SIGN) % count
        fraction, remaining = self._runs.get(topic, (0.0, 0))
        if not remaining:
            fraction, remaining = random.random(), _RUN_MESSAGES  # noqa: S311 - it spreads load and keeps no secret
        self._runs[topic] = fraction, remaining - 1
        return int(fraction * count)


def string_hash(text: str) -> int:
    """Java's `String.hashCode`: computed over UTF-16 units, as a signed int32."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _MASK
    return value - 2 * (value & _SIGN)  # unsigned to signed: subtract 2**32 if the sign bit is set


def murmur2(data: bytes) -> int:
    """The hash of Java's clients (MurmurHash2, 32 bits, their seed), as an unsigned number."""
    value = _SEED ^ len(data)
    whole_bytes = len(data) // _WORD_BYTES * _WORD_BYTES
    for start in range(0, whole_bytes, _WORD_BYTES):
        word = int.from_bytes(data[start : start + _WORD_BYTES], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        value = (value * _MULTIPLIER & _MASK) ^ word
    if tail := data[whole_bytes:]:
        value = (value ^ int.from_bytes(tail, "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    return value ^ value >> 15
