"""Exact sets: which offsets of a partition have no row for a reason that Kafka's log does not show.

From 0.8 on an offset has one row at most, so a set consists of runs of offsets. In 0.7 an offset can have several rows,
so a set consists of rows: pairs of an offset and the `inner` position in its message.

A set is stored in few bytes: its form, the number of its runs or rows, for each of them the distance from the one
before it, and then the lengths, or the inner positions, that differ from the usual ones. All numbers are varints. A set
can be stored in one way only, so the digest of the bytes is the digest of the set.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from kafka_io.model import OffsetRange
from resources.errors import ExactSetLost

MAX_ENCODED_BYTES = 256 * 1024 * 1024
"""The maximum size of a stored set: more bytes than those of 100 million single offsets."""
_RUNS, _ROWS = 1, 2
_MAX_VARINT_BYTES = 10
_MAX_OFFSET = np.uint64(2**63 - 1)

_Numbers = npt.NDArray[np.int64]
_Unsigned = npt.NDArray[np.uint64]
_Mask = npt.NDArray[np.bool_]


def _none() -> _Numbers:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class ExactOffsets:
    """A set of offsets, or of rows, of one partition.

    Args:
        firsts: where the runs start, ascending; or the offsets of the rows.
        seconds: the offsets after the ends of the runs, which do not touch; or the inner positions of the rows.
        by_row: whether the set has rows.
    """

    firsts: _Numbers = field(default_factory=_none)
    seconds: _Numbers = field(default_factory=_none)
    by_row: bool = False

    @classmethod
    def of(cls, offsets: _Numbers, inner: _Numbers | None = None) -> Self:
        """The set of these offsets; of these rows, if the inner positions are given. Some may be given again."""
        if inner is None:
            ends = np.flatnonzero(np.diff(offsets) != 1)  # a batch has most of its offsets in long runs
            firsts, lasts = (
                offsets[np.append(0, ends + 1)[: len(offsets)]],
                offsets[np.append(ends, -1)[: len(offsets)]],
            )
            return cls.of_runs(firsts, lasts + 1)
        order = np.lexsort((inner, offsets))
        offsets, inner = offsets[order], inner[order]
        is_new = np.append(True, (np.diff(offsets) != 0) | (np.diff(inner) != 0))[: len(offsets)]
        return cls(offsets[is_new], inner[is_new], by_row=True)

    @classmethod
    def of_runs(cls, starts: _Numbers, stops: _Numbers) -> Self:
        """The set of the offsets of these runs `[start, stop)`, which may overlap."""
        filled = starts < stops
        starts, stops = starts[filled], stops[filled]
        if not len(starts):
            return cls()
        order = np.argsort(starts, kind="stable")
        starts, stops = starts[order], np.maximum.accumulate(stops[order])
        begins = np.append(True, starts[1:] > stops[:-1])
        return cls(starts[begins], stops[np.append(begins[1:], True)])

    @property
    def count(self) -> int:
        """The number of offsets, or of rows."""
        return len(self.firsts) if self.by_row else int((self.seconds - self.firsts).sum())

    @property
    def stops(self) -> _Numbers:
        """The offset after each run, or after each row."""
        return self.firsts + 1 if self.by_row else self.seconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExactOffsets) and self.encode() == other.encode()

    def __hash__(self) -> int:
        return hash(self.encode())

    def __or__(self, other: Self) -> Self:
        """The union of two sets of one partition."""
        return self.union((self, other))

    @classmethod
    def union(cls, sets: Iterable[Self]) -> Self:
        """The union of sets of one partition. An empty set has no form.

        Raises:
            ExactSetLost: some of them are sets of rows, and others are not.
        """
        filled = [own for own in sets if len(own.firsts)]
        if len(filled) < 2:
            return filled[0] if filled else cls()
        if len({own.by_row for own in filled}) > 1:
            raise ExactSetLost("a set of offsets and a set of rows are of one partition")
        firsts = np.concatenate([own.firsts for own in filled])
        seconds = np.concatenate([own.seconds for own in filled])
        return cls.of(firsts, seconds) if filled[0].by_row else cls.of_runs(firsts, seconds)

    def within(self, offsets: OffsetRange) -> Self:
        """The part of the set that is in a range."""
        if offsets.size <= 0:
            return type(self)()
        if self.by_row:
            low, high = np.searchsorted(self.firsts, (offsets.start, offsets.stop)).tolist()
            return type(self)(self.firsts[low:high], self.seconds[low:high], by_row=True)
        low = int(np.searchsorted(self.seconds, offsets.start, side="right"))
        high = int(np.searchsorted(self.firsts, offsets.stop, side="left"))
        starts = np.maximum(self.firsts[low:high], offsets.start)
        return type(self)(starts, np.minimum(self.seconds[low:high], offsets.stop))

    def complement(self, offsets: OffsetRange) -> Self:
        """The offsets of a range that are not in a set of runs."""
        own = self.within(offsets)
        return self.of_runs(np.append(offsets.start, own.seconds), np.append(own.firsts, offsets.stop))

    def contains(self, offsets: _Numbers, inner: _Numbers) -> _Mask:
        """The mask of those rows that are in the set. From 0.8 on, `inner` has no meaning."""
        if not len(self.firsts):
            return np.zeros(len(offsets), np.bool_)
        if not self.by_row:
            places = np.searchsorted(self.firsts, offsets, side="right") - 1
            in_runs: _Mask = (places >= 0) & (offsets < self.seconds[places])
            return in_runs
        # Each row becomes one number: the place of its offset among those of the set, and its inner position.
        known = np.unique(self.firsts)
        width = int(self.seconds.max()) + 1
        places = np.minimum(np.searchsorted(known, offsets), len(known) - 1)
        in_rows: _Mask = np.isin(places * width + inner, np.searchsorted(known, self.firsts) * width + self.seconds)
        in_rows &= (known[places] == offsets) & (inner >= 0) & (inner < width)
        return in_rows

    def encode(self) -> bytes:
        """The set as bytes."""
        before = self.firsts if self.by_row else self.seconds
        distances = (self.firsts - np.append(0, before[:-1])[: len(before)]).astype(np.uint64)
        extras = (self.seconds if self.by_row else self.seconds - self.firsts - 1).astype(np.uint64)
        has_extra = extras > 0
        flagged = (distances << np.uint64(1)) | has_extra.astype(np.uint64)
        numbers = np.concatenate((np.array([len(distances)], np.uint64), flagged, extras[has_extra] - np.uint64(1)))
        return bytes([_ROWS if self.by_row and len(distances) else _RUNS]) + _varints(numbers)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The inverse of `encode`.

        Raises:
            ExactSetLost: these are not the bytes of a set.
        """
        if len(data) > MAX_ENCODED_BYTES:
            raise ExactSetLost(f"a set of offsets has {len(data)} bytes, and at most {MAX_ENCODED_BYTES} are read")
        if not data or data[0] not in {_RUNS, _ROWS}:
            raise ExactSetLost(f"a set of offsets begins with the byte {data[:1].hex() or 'none'}, which is no form")
        numbers = _of_varints(np.frombuffer(data, np.uint8, offset=1))
        size = int(numbers[0])
        if size > len(numbers) - 1:
            raise ExactSetLost(f"a set of offsets has fewer than its {size} elements")
        flagged, extras = numbers[1 : size + 1], numbers[size + 1 :]
        has_extra = (flagged & np.uint64(1)).astype(np.bool_)
        if np.count_nonzero(has_extra) != len(extras) or (extras >= _MAX_OFFSET - np.uint64(1)).any():
            raise ExactSetLost("a set of offsets has numbers that belong to no element")
        seconds = np.zeros(size, np.uint64)
        seconds[has_extra] = extras + np.uint64(1)
        distances = flagged >> np.uint64(1)
        return cls._of_rows(distances, seconds) if data[0] == _ROWS else cls._of_distances(distances, seconds)

    @classmethod
    def _of_rows(cls, distances: _Unsigned, inner: _Unsigned) -> Self:
        offsets, positions = _sums(distances), inner.astype(np.int64)
        if not len(offsets) or ((np.diff(offsets) == 0) & (np.diff(positions) <= 0)).any():
            raise ExactSetLost("a set of rows has none, or they are not in order")
        return cls(offsets, positions, by_row=True)

    @classmethod
    def _of_distances(cls, distances: _Unsigned, lengths_less_1: _Unsigned) -> Self:
        if not distances[1:].all():
            raise ExactSetLost("two runs of a set of offsets touch")
        sums = _sums(np.stack((distances, lengths_less_1 + np.uint64(1)), axis=1).ravel())
        return cls(sums[0::2], sums[1::2])


NO_OFFSETS = ExactOffsets()


def _sums(steps: _Unsigned) -> _Numbers:
    """The sums up to each step. No step is above the largest offset, so the first sum that is can be seen."""
    sums = np.cumsum(steps, dtype=np.uint64)
    if (sums > _MAX_OFFSET).any():
        raise ExactSetLost("a set of offsets has an offset above the largest one")
    return sums.astype(np.int64)


def _varints(numbers: _Unsigned) -> bytes:
    """The numbers as varints: seven bits in each byte, the lowest first; all bytes but the last have the high bit."""
    sizes = np.ones(len(numbers), np.int64)
    for size in range(1, -(-int(numbers.max()).bit_length() // 7)):
        sizes += (numbers >> np.uint64(7 * size)) > 0
    places = np.cumsum(sizes) - sizes
    data = np.zeros(int(sizes.sum()), np.uint8)
    for index in range(int(sizes.max())):
        chosen = sizes > index
        bits = ((numbers[chosen] >> np.uint64(7 * index)) & np.uint64(0x7F)).astype(np.uint8)
        data[places[chosen] + index] = bits | np.where(sizes[chosen] > index + 1, 0x80, 0).astype(np.uint8)
    return data.tobytes()


def _of_varints(data: npt.NDArray[np.uint8]) -> _Unsigned:
    """The inverse of `_varints`.

    Raises:
        ExactSetLost: the bytes end within a number, or a number has more bytes than it needs.
    """
    last = np.flatnonzero(data < 0x80)
    if not len(last) or last[-1] != len(data) - 1:
        raise ExactSetLost("a set of offsets ends within a number")
    first = np.append(0, last[:-1] + 1)
    sizes = last - first + 1
    too_long = (sizes > _MAX_VARINT_BYTES) | ((sizes == _MAX_VARINT_BYTES) & (data[last] > 1))
    if too_long.any() or ((sizes > 1) & (data[last] == 0)).any():
        raise ExactSetLost("a set of offsets has a number of another length than it needs")
    numbers = np.zeros(len(last), np.uint64)
    for index in range(int(sizes.max())):
        chosen = sizes > index
        bits = (data[first[chosen] + index] & np.uint8(0x7F)).astype(np.uint64)
        numbers[chosen] |= bits << np.uint64(7 * index)
    return numbers
