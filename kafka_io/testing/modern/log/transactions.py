"""The transactions of one log (KIP-98): which are open, where the last stable offset is, which ranges were aborted.

The state is restored from the batches when the log is opened: a flag marks the batches of transactions, and markers end
them.
"""

from struct import Struct

from kafka_io.compression import BytesLike
from kafka_io.messages.fetch import AbortedTransaction
from kafka_io.records.build import Record, record_batch
from kafka_io.records.layout import BATCH_BYTES, CONTROL, TRANSACTIONAL
from kafka_io.testing.modern.log.header import BatchHeader

_ABORT, _COMMIT = 0, 1
_MARKER_KEY = Struct(">hh")  # version | type
_MARKER_VALUE = Struct(">hi")  # version | epoch of the coordinator
# A marker is a batch of one small record. Before the key come its length, attributes, timestamp delta, offset delta and
# the length of the key: varints of one byte each.
_MARKER_KEY_AT = BATCH_BYTES + 5
_NO_SEQUENCE = -1


def marker(producer_id: int, epoch: int, time_ms: int, *, commit: bool) -> bytearray:
    """The control batch that ends a transaction."""
    key = _MARKER_KEY.pack(0, _COMMIT if commit else _ABORT)
    record = Record(timestamp=time_ms, key=key, value=_MARKER_VALUE.pack(0, 0))
    producer = producer_id, epoch, _NO_SEQUENCE
    return bytearray(record_batch([record], attributes=TRANSACTIONAL | CONTROL, producer=producer))


class LogTransactions:
    """The open and the aborted transactions of one log."""

    def __init__(self) -> None:
        self._first_offsets: dict[int, int] = {}  # of the open transactions, by producer id
        self._aborted: tuple[tuple[AbortedTransaction, int], ...] = ()  # each with the offset of its marker

    def track(self, header: BatchHeader, batch: BytesLike) -> None:
        """Take the next batch into account. If it is a marker, `batch` must contain all its bytes."""
        if header.is_control:
            _, marker_type = _MARKER_KEY.unpack_from(batch, _MARKER_KEY_AT)
            first_offset = self._first_offsets.pop(header.producer_id, None)
            if marker_type == _ABORT and first_offset is not None:
                aborted = AbortedTransaction(producer_id=header.producer_id, first_offset=first_offset)
                self._aborted = (*self._aborted, (aborted, header.base_offset))
        elif header.is_transactional:  # the first batch of the producer begins the transaction
            self._first_offsets.setdefault(header.producer_id, header.base_offset)

    def has_open(self, producer_id: int) -> bool:
        """Whether this producer has a transaction with records in the log and no marker yet."""
        return producer_id in self._first_offsets

    def last_stable_offset(self, log_end: int) -> int:
        """The first offset of an open transaction, or `log_end` if no transaction is open."""
        # The tuple is one step for the interpreter; other threads may change the dict during a longer iteration.
        return min(tuple(self._first_offsets.values()), default=log_end)

    def aborted(self, start: int, stop: int) -> tuple[AbortedTransaction, ...]:
        """The aborted transactions that touch the offsets `[start, stop)`, ordered by their ends."""
        return tuple(aborted for aborted, end in self._aborted if aborted.first_offset < stop and end >= start)

    def forget_before(self, start: int) -> None:
        """Forget the aborted transactions before `start`, the new start of the log."""
        self._aborted = tuple((aborted, end) for aborted, end in self._aborted if end >= start)
