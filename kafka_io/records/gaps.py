"""Offsets of a log without a record, by the cause that the log itself shows.

Nothing here is computed as a remainder: the header of a record batch says how many records it holds, and the offsets of
neighbouring entries show the holes between them. So a decoder that loses rows is an error and not a gap.
"""

from collections import Counter

COMPACTED = "compacted"
"""A record batch has fewer records than offsets, according to its header."""
CONTROL = "control"
"""The marker of a transaction."""
ABORTED = "aborted"
"""The records of an aborted transaction."""
HOLE = "hole"
"""No record batch, or message of formats 0 and 1, has the offset.

Compaction removes whole batches and messages. If the topic is not compacted, the log has lost them.
"""


class ObservedGaps:
    """Gaps, counted while a log is decoded.

    Attributes:
        counts: number of offsets by cause.
        holes: from the start of the first hole to the end of the last one; None without a hole.
    """

    __slots__ = ("counts", "holes")

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.holes: tuple[int, int] | None = None

    def add(self, cause: str, count: int) -> None:
        """Count offsets without a record."""
        if count:
            self.counts[cause] += count

    def add_holes(self, start: int, stop: int, count: int) -> None:
        """Count `count` offsets of holes, the first of which starts at `start` and the last of which ends at `stop`."""
        if count:
            self.counts[HOLE] += count
            self.holes = (self.holes[0] if self.holes else start, stop)

    def take(self) -> tuple[Counter[str], tuple[int, int] | None]:
        """The counts and the holes so far; afterwards there are none."""
        counts, holes = self.counts, self.holes
        self.counts, self.holes = Counter(), None
        return counts, holes
