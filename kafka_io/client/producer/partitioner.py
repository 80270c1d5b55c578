"""Which partition a message goes to: an index into the broker-partitions sorted by broker, then partition (seed 003).

A key goes to the same partition as long as their number does not change. Without a key, one is drawn.
"""

import random
from typing import Protocol

_MASK = 0xFFFFFFFF
_SIGN = 0x80000000
_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C
_WORD = 4


class Partitioner(Protocol):
    """Chooses among `count` partitions.

    >>> class FirstPartition:
    ...     def choose(self, topic: str, key: bytes | None, count: int) -> int:
    ...         return 0
    >>> FirstPartition().choose("clicks", b"key", 4)
    0
    """

    def choose(self, topic: str, key: bytes | None, count: int) -> int:
        """An index from 0 to `count` - 1; it is called by one thread at a time."""
        ...


class StringHashPartitioner:
    """Chooses as 0.7's own producer does for keys that are text: by Java's hash of the string, or at random.

    >>> StringHashPartitioner().choose("clicks", b"user-1", 4)
    1
    """

    def choose(self, topic: str, key: bytes | None, count: int) -> int:  # noqa: ARG002 - all topics are alike
        """`abs(hash) % count` (facts, 7)."""
        if key is None:
            return random.randrange(count)  # noqa: S311 - load is spread, no secret made
        return abs(string_hash(key.decode(errors="replace"))) % count


class Murmur2Partitioner:
    """Chooses as Java's clients do from 0.8.2 on: by murmur2 of the key.

    Without a key `run` messages in a row go to one partition, and so travel and are compressed together (KIP-480).

        >>> Murmur2Partitioner().choose("clicks", b"user-1", 4)
        0
    """

    def __init__(self, *, run: int = 200) -> None:
        self._run = run
        self._drawn: dict[str, tuple[float, int]] = {}

    def choose(self, topic: str, key: bytes | None, count: int) -> int:
        """The hash without its sign, modulo `count`."""
        if key is not None:
            return (murmur2(key) & ~_SIGN) % count
        drawn, left = self._drawn.get(topic, (0.0, 0))
        if not left:
            drawn, left = random.random(), self._run  # noqa: S311 - load is spread, no secret made
        self._drawn[topic] = drawn, left - 1
        return int(drawn * count)


def string_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16, as a signed int32."""
    units = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        found = (31 * found + (high << 8 | low)) & _MASK
    return found - 2 * (found & _SIGN)


def murmur2(data: bytes) -> int:
    """The hash of Java's clients, as an unsigned 32-bit number."""
    found = _SEED ^ len(data)
    whole = len(data) // _WORD * _WORD
    for at in range(0, whole, _WORD):
        word = int.from_bytes(data[at : at + _WORD], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        found = (found * _MULTIPLIER & _MASK) ^ word
    if rest := data[whole:]:
        found = (found ^ int.from_bytes(rest, "little")) * _MULTIPLIER & _MASK
    found = (found ^ found >> 13) * _MULTIPLIER & _MASK
    return found ^ found >> 15
