"""Idempotent producers of one log (KIP-98): a batch that is sent twice is stored once.

A producer numbers its records per partition. The broker remembers the last batches of each producer. It accepts only
the batch that follows them. This state is restored from the batch headers when the log is opened.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from kafka_io.error_codes import ErrorCode
from kafka_io.errors import BrokerError
from kafka_io.testing.modern.log.header import NO_PRODUCER_ID, BatchHeader

# A producer may have five requests in flight, so any of its last five batches may be sent again.
_MAX_BATCHES_PER_PRODUCER = 5
_MAX_PRODUCERS = 10_000
_SEQUENCE_NUMBERS = 2**31  # the number after 2**31 - 1 is 0


@dataclass(slots=True)
class _ProducerState:
    epoch: int
    batches: deque[BatchHeader] = field(default_factory=lambda: deque(maxlen=_MAX_BATCHES_PER_PRODUCER))


class ProducerStates:
    """The last batches of each producer. The producer that was silent for the longest time is forgotten first."""

    def __init__(self) -> None:
        self._states: OrderedDict[int, _ProducerState] = OrderedDict()

    def find_duplicate(self, header: BatchHeader) -> BatchHeader | None:
        """The header of the same batch as it is stored in the log; None if the batch is new.

        Raises:
            BrokerError: a newer producer has the id (code 47), or the sequence number is not the next one (code 45).
        """
        state = self._states.get(header.producer_id)
        if state is None:
            return None
        if header.producer_epoch < state.epoch:
            raise BrokerError("a newer producer has this id", code=ErrorCode.INVALID_PRODUCER_EPOCH)
        expected_sequence = 0  # a new epoch begins with 0
        if header.producer_epoch == state.epoch and state.batches:
            for batch in state.batches:
                if (batch.base_sequence, batch.record_count) == (header.base_sequence, header.record_count):
                    return batch
            last = state.batches[-1]
            expected_sequence = (last.base_sequence + last.record_count) % _SEQUENCE_NUMBERS
        if header.base_sequence != expected_sequence:
            raise BrokerError(
                f"the batch has sequence number {header.base_sequence}, {expected_sequence} was expected",
                code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            )
        return None

    def track(self, header: BatchHeader) -> None:
        """Remember a batch that is in the log now."""
        if header.producer_id == NO_PRODUCER_ID:
            return
        state = self._states.get(header.producer_id)
        if state is None or state.epoch != header.producer_epoch:
            state = self._states[header.producer_id] = _ProducerState(header.producer_epoch)
        if not header.is_control:  # a marker has no sequence number, but it can begin a new epoch
            state.batches.append(header)
        self._states.move_to_end(header.producer_id)
        if len(self._states) > _MAX_PRODUCERS:
            self._states.popitem(last=False)
