"""Aborted transactions of a fetch answer: read-committed consumers skip their records."""

from collections.abc import Sequence
from struct import Struct

from kafka_io.errors import Corrupt, Where

# A control record's key: int16 version | int16 type; 0 is an abort, 1 a commit [kafka-0.8: Control records].
_MARKER = Struct(">hh")
_ABORT = 0

AbortedRange = tuple[int, int]


class AbortedTransactions:
    """Tracks which producers have an open aborted transaction while batches are read in offset order.

    `ranges` are the aborted transactions of the fetch answer: (producer id, first offset).
    """

    def __init__(self, ranges: Sequence[AbortedRange]) -> None:
        self._coming = sorted(ranges, key=lambda aborted: aborted[1], reverse=True)
        self._open: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._coming or self._open)

    def covers(self, producer: int, last: int) -> bool:
        """Whether the transactional batch of `producer` that ends with offset `last` was aborted."""
        while self._coming and self._coming[-1][1] <= last:
            self._open.add(self._coming.pop()[0])
        return producer in self._open

    def end(self, producer: int, key: bytes | None, where: Where) -> None:
        """Process the transaction marker of `producer` with this `key`. `where` is its place, for errors.

        Raises:
            Corrupt: the key is not that of a transaction marker.
        """
        if key is None or len(key) < _MARKER.size:
            raise Corrupt("a control record without the key of a transaction marker", where)
        _, kind = _MARKER.unpack_from(key)
        if kind == _ABORT:
            self._open.discard(producer)
