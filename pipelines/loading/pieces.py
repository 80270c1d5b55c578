"""Cutting committed ranges at an interval: what of them lies inside it, and what is left of them outside."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kafka_io.model import BrokerPartition
from pipelines.loading.ledger import Range
from pipelines.loading.table_log import Snapshot, TableLog

MIXED = "mixed"
"""The cause of gaps in what is left of a range with gaps of several causes: which lie where was not kept."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Interval:
    """Offsets `[start, stop)` of one partition."""

    id: BrokerPartition
    start: int
    stop: int

    def __str__(self) -> str:
        return f"partition {self.id} [{self.start}, {self.stop})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Carved:
    """Of the ranges that meet an interval: the pieces inside it, and those left outside, with what each was part of.

    The rows of a piece are not counted yet; its file is that of the whole.
    """

    inside: tuple[Range, ...]
    left: tuple[tuple[Range, Range], ...]


def carve(ranges: Iterable[Range], intervals: Sequence[Interval]) -> Carved:
    """Cut `ranges`, of which none lies over another, at `intervals`, of which none meets another."""
    inside: list[Range] = []
    left: list[tuple[Range, Range]] = []
    of: dict[BrokerPartition, list[Interval]] = defaultdict(list)
    for one in sorted(intervals):
        of[one.id].append(one)
    for whole in ranges:
        met = [one for one in of.get(whole.id, ()) if one.start < whole.stop and whole.start < one.stop]
        at = whole.start
        for one in met:
            start, stop = max(one.start, whole.start), min(one.stop, whole.stop)
            inside.append(_piece(whole, start, stop))
            if at < start:
                left.append((_piece(whole, at, start), whole))
            at = stop
        if met and at < whole.stop:
            left.append((_piece(whole, at, whole.stop), whole))
    return Carved(inside=tuple(inside), left=tuple(left))


def _piece(whole: Range, start: int, stop: int) -> Range:
    return replace(whole, start=start, stop=stop)


def counted(log: TableLog, at: Snapshot, left: Sequence[tuple[Range, Range]]) -> tuple[Range, ...]:
    """The pieces with their rows counted in the table, and their gaps made out from that."""
    rows = log.held(at, [piece for piece, _ in left])
    return tuple(_told(piece, whole, count) for (piece, whole), count in zip(left, rows, strict=True))


def _told(piece: Range, whole: Range, rows: int) -> Range:
    size = piece.stop - piece.start
    gaps: dict[str, int] = {}
    # Offsets of 0.7 are bytes, which gaps do not make up, unless all of it expired.
    if piece.broker is None or sum(whole.gaps.values()) == whole.stop - whole.start:
        missing = size - rows
        cause = next(iter(whole.gaps)) if len(whole.gaps) == 1 else MIXED
        gaps = {cause: missing} if missing else {}
    size_bytes = size if piece.broker is not None else whole.bytes * rows // max(1, whole.rows)
    return replace(piece, rows=rows, gaps=gaps, bytes=size_bytes)
