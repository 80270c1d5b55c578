"""What transactions leave in one log (KIP-98): which are open, where the stable part ends, which ranges were aborted.

All of it is found again in the log when that is opened: batches say that they are of a transaction, markers end it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

from kafka_io.broker.modern.log.header import BatchHeader
from kafka_io.compression import Bytes
from kafka_io.records.build import Record, record_batch
from kafka_io.records.layout import BATCH_BYTES, CONTROL, TRANSACTIONAL

_ABORT, _COMMIT = 0, 1
_KEY = Struct(">hh")  # version | type
_VALUE = Struct(">hi")  # version | the coordinator's epoch
# The one record of a marker begins with its length, attributes, two deltas and the key's length, a byte each.
_KEY_AT = BATCH_BYTES + 5
_NO_SEQUENCE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortedRange:
    """A producer's transaction from its first record to its marker; readers of committed records leave it out."""

    producer_id: int
    first: int
    last: int


def marker(producer_id: int, epoch: int, time_ms: int, *, commit: bool) -> bytearray:
    """The batch that ends a transaction."""
    record = Record(timestamp=time_ms, key=_KEY.pack(0, _COMMIT if commit else _ABORT), value=_VALUE.pack(0, 0))
    producer = producer_id, epoch, _NO_SEQUENCE
    return bytearray(record_batch([record], attributes=TRANSACTIONAL | CONTROL, producer=producer))


class LogTransactions:
    """The transactions of one log, as its batches tell."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._aborted: tuple[AbortedRange, ...] = ()

    def note(self, header: BatchHeader, batch: Bytes) -> None:
        """The batch of `header` is in the log now; of a marker, `batch` holds all its bytes."""
        if header.is_control:
            _, kind = _KEY.unpack_from(batch, _KEY_AT)
            first = self._open.pop(header.producer_id, None)
            if kind == _ABORT and first is not None:
                ended = AbortedRange(producer_id=header.producer_id, first=first, last=header.base)
                self._aborted = (*self._aborted, ended)
        elif header.is_transactional:
            self._open.setdefault(header.producer_id, header.base)

    def has_open(self, producer_id: int) -> bool:
        """Whether a transaction of this producer has records here and no end yet."""
        return producer_id in self._open

    def stable(self, end: int) -> int:
        """The offset before which no transaction is open, in a log with this end."""
        return min(tuple(self._open.values()), default=end)

    def aborted(self, start: int, stop: int) -> Sequence[AbortedRange]:
        """The aborted ranges that touch the offsets `[start, stop)`, by where they end."""
        return [one for one in self._aborted if one.first < stop and one.last >= start]

    def forget_before(self, start: int) -> None:
        """The log begins at `start` now."""
        self._aborted = tuple(one for one in self._aborted if one.last >= start)
