"""Which segments of a log have to go (facts, 8): whole ones, from the front, by age and by size."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from kafka_io.broker.log.segment import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long, and how much of it, a log is kept."""

    age_ms: int
    size_bytes: int | None

    def count_expired(self, segments: Sequence[Segment], now_ms: int) -> int:
        """How many segments, from the front, are to be deleted."""
        return max(self._count_old(segments, now_ms), self._count_surplus(segments))

    def _count_old(self, segments: Sequence[Segment], now_ms: int) -> int:
        oldest = takewhile(lambda segment: now_ms - segment.modified_ms > self.age_ms, segments)
        return sum(1 for _ in oldest)

    def _count_surplus(self, segments: Sequence[Segment]) -> int:
        """Segments without which the log still has `size_bytes`."""
        if self.size_bytes is None:
            return 0
        sizes = [segment.size for segment in segments]
        surplus = sum(sizes) - self.size_bytes
        return sum(1 for _ in takewhile(lambda deleted: deleted <= surplus, accumulate(sizes)))
