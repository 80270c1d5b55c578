"""The entries of a fetch answer from 0.8 on, while they are read: messages of formats 0 and 1, record batches."""

from collections import Counter
from dataclasses import dataclass
from struct import Struct

import numpy as np

from kafka_io.compression import Bytes
from kafka_io.errors import Corrupt, PastEnd, Unsupported, Where, WireError
from kafka_io.records.kernels import outcomes
from kafka_io.records.kernels.scalars import Bytes as Array
from kafka_io.records.layout import BATCH_LAST_DELTA_AT, BATCH_MAGIC, ENTRY_BYTES, ENTRY_LENGTH_AT, MAGIC_AT

_LENGTH = Struct(">i")
_OFFSET = Struct(">q")
_NO_MORE = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The offsets `[at, stop)` that were asked for.

    Args:
        at: rows before it are left out: a fetch returns the whole batch that holds it.
        stop: rows from it on are left out, and nothing is read that begins there.
        end: where the broker says that the log ends. An entry that reaches it is PastEnd.

    Raises:
        ValueError: a range that is none.

    >>> Asked(at=5, stop=8)
    Asked(at=5, stop=8, end=9223372036854775807)
    >>> Asked(at=5, stop=5)
    Traceback (most recent call last):
    ...
    ValueError: offsets must be 0 <= at < stop, at <= end, not Asked(at=5, stop=5, end=9223372036854775807)
    """

    at: int
    stop: int = _NO_MORE
    end: int = _NO_MORE

    def __post_init__(self) -> None:
        if not 0 <= self.at < self.stop <= _NO_MORE or self.end < self.at:
            raise ValueError(f"offsets must be 0 <= at < stop, at <= end, not {self}")


class Entries:
    """`data`, read up to the byte `at`; the offsets of `asked`, read up to `next`.

    `floor` is the last offset of the entry before, `gaps` what was passed without a row, by cause.
    """

    __slots__ = ("array", "asked", "at", "floor", "gaps", "next", "tail", "view", "where")

    def __init__(self, data: Bytes, asked: Asked, where: Where) -> None:
        self.view = memoryview(data)
        self.array = read_only(self.view)
        self.asked = asked
        self.where = where
        self.at = 0
        self.next = asked.at
        self.floor = -1
        self.tail = False
        self.gaps: Counter[str] = Counter()

    @property
    def magic(self) -> int | None:
        """Of the entry at hand; None when too little of it is there."""
        return self.view[self.at + MAGIC_AT] if len(self.view) - self.at > MAGIC_AT else None

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to read: no whole entry, or none that was asked for."""
        return self.tail or self.at == len(self.view) or self.next >= self.asked.stop

    @property
    def least(self) -> int:
        """The offset above which the next entry must end: a broker sends none that lies wholly before `asked.at`."""
        return max(self.floor, self.asked.at - 1)

    def stand_at(self, at: int, status: int) -> None:
        """Go on from `at`, where a kernel stopped with `status`.

        Raises:
            WireError: it met what cannot be read, and is not behind what was asked for.
        """
        self.at = at
        self.tail = status == outcomes.CUT
        if status not in _STOPS and self.next < self.asked.stop:
            raise self.fault(status).placed(self.where.at(self.next))

    def pass_to(self, last: int) -> None:
        """The entry that ends with the offset `last` is read."""
        self.next = max(self.next, min(last + 1, self.asked.stop))
        self.floor = last

    def pass_over(self, base: int, last: int, cause: str) -> None:
        """The entry of the offsets from `base` to `last` gives no rows."""
        before = max(self.next, base)
        self.pass_to(last)
        self.gaps[cause] += self.next - before

    def finish(self) -> None:
        """What comes begins at or behind the end of what was asked for."""
        self.next = self.asked.stop

    def fault(self, status: int) -> WireError:
        """What a kernel's `status` says about the entry at `at`."""
        view = self.view[self.at :]
        length = ENTRY_BYTES + _LENGTH.unpack_from(view, ENTRY_LENGTH_AT)[0]
        if status == outcomes.BAD_LENGTH:
            return Corrupt(f"an entry of {length} bytes")
        if status == outcomes.BAD_MAGIC:
            return Unsupported(f"an entry of magic {view[MAGIC_AT]}")
        if status == outcomes.BAD_OFFSET:
            base, last = _OFFSET.unpack_from(view)[0], _last_offset(view)
            kind = PastEnd if self.floor < base <= last and last >= self.asked.end else Corrupt
            return kind(
                f"an entry with offset {base}, out of order or out of what was asked for: "
                f"read up to {self.floor}, {self.asked}"
            )
        return Corrupt(f"an entry of magic {view[MAGIC_AT]} and {length} bytes: {REASONS[status]}")


_STOPS = (outcomes.END, outcomes.CUT, outcomes.PAUSED, outcomes.OTHER_FORMAT, outcomes.WRAPPER)
REASONS = {
    outcomes.BAD_LENGTH: "a length that cannot be right",
    outcomes.BAD_MAGIC: "another magic inside",
    outcomes.BAD_CRC: "wrong CRC",
    outcomes.BAD_OFFSET: "offsets that do not grow, or leave their bounds",
    outcomes.BAD_COUNT: "a count that cannot be right",
    outcomes.BAD_VARINT: "a varint that has no end",
    outcomes.BAD_FIELD: "a key, value or header that does not fit in",
    outcomes.BAD_END: "it ends elsewhere than it says",
    outcomes.CUT: "it is cut",
    outcomes.WRAPPER: "a compressed message inside a compressed one",
    outcomes.OTHER_FORMAT: "a record batch inside a compressed message",
}


def _last_offset(entry: memoryview) -> int:
    """Of a message its own; of a batch what its head says, which no checksum covers."""
    base: int = _OFFSET.unpack_from(entry)[0]
    return base + _LENGTH.unpack_from(entry, BATCH_LAST_DELTA_AT)[0] if entry[MAGIC_AT] == BATCH_MAGIC else base


def read_only(data: Bytes) -> Array:
    """`data` as kernels take it, without a copy."""
    array = np.frombuffer(data, np.uint8)
    array.flags.writeable = False
    return array
