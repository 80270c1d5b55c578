"""Idempotent producers of one log (KIP-98): a batch that is sent again is stored once.

A producer numbers its records per partition. The broker remembers the last batches of each, and takes from it only the
one that follows them. What it remembers is found again in the log when that is opened.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from kafka_io.broker.modern.codes import Code
from kafka_io.broker.modern.log.header import NO_PRODUCER_ID, BatchHeader
from kafka_io.errors import BrokerError

_REMEMBERED_BATCHES = 5  # what a producer may have under way
_REMEMBERED_PRODUCERS = 10_000
_SEQUENCES = 2**31


@dataclass(slots=True)
class _Producer:
    epoch: int
    batches: deque[BatchHeader] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_BATCHES))


class Producers:
    """What is remembered of each producer; the one not heard of for longest is forgotten first."""

    def __init__(self, batches: Iterable[BatchHeader] = ()) -> None:
        self._known: OrderedDict[int, _Producer] = OrderedDict()
        for header in batches:
            self.note(header)

    def stored(self, header: BatchHeader) -> BatchHeader | None:
        """The same batch as it stands in the log already; None for a new one.

        Raises:
            BrokerError: a newer producer has the id (47), or a batch before this one is missing (45).
        """
        known = self._known.get(header.producer_id)
        if known is None:
            return None
        if header.producer_epoch < known.epoch:
            raise BrokerError("a newer producer has this id", code=Code.INVALID_PRODUCER_EPOCH)
        if header.producer_epoch > known.epoch or not known.batches:
            expected = 0
        else:
            for batch in known.batches:
                if (batch.sequence, batch.count) == (header.sequence, header.count):
                    return batch
            expected = (known.batches[-1].sequence + known.batches[-1].count) % _SEQUENCES
        if header.sequence != expected:
            raise BrokerError(
                f"sequence number {header.sequence} where {expected} was due", code=Code.OUT_OF_ORDER_SEQUENCE_NUMBER
            )
        return None

    def note(self, header: BatchHeader) -> None:
        """The batch of `header` is in the log now."""
        if header.producer_id == NO_PRODUCER_ID:
            return
        known = self._known.get(header.producer_id)
        if known is None or known.epoch != header.producer_epoch:
            known = self._known[header.producer_id] = _Producer(header.producer_epoch)
        if not header.is_control:  # a marker tells of the epoch alone
            known.batches.append(header)
        self._known.move_to_end(header.producer_id)
        if len(self._known) > _REMEMBERED_PRODUCERS:
            self._known.popitem(last=False)
